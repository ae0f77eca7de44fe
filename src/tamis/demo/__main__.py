"""`python -m tamis.demo`: the pipeline on local Spark."""

from tamis.demo.pipeline import run

if __name__ == "__main__":
    run()
