"""`python -m tamis.cli`."""

from tamis.cli import main

main()
