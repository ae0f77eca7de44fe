"""`python -m tamis.demo`."""

from tamis.demo import run

if __name__ == "__main__":
    run()
