"""`make demo`: 200,000 advertising campaigns, and page views streaming through them."""

from tamis.demo import run

if __name__ == "__main__":
    run()
