"""`make demo`: campaigns and page views, matched on local Spark in batch and as streams."""

from tamis.demo.pipeline import run

if __name__ == "__main__":
    run()
