"""`python -m tamis.demo`."""

from tamis.demo import run

run()
