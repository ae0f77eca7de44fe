"""`python -m tamis.cli`."""

from tamis.cli import main

if __name__ == "__main__":
    main()
