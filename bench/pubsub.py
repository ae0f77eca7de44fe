"""`make bench-pubsub`: compare one or three sites with the raw log; writes bench/results/pubsub.json."""

import argparse

from tamis_lab.benchmark.delivery import SHARES, run
from tamis_lab.benchmark.scale import parse_size

if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--subscriptions", type=parse_size, default=100_000)
    arguments.add_argument("--events", type=parse_size, default=10_000)
    arguments.add_argument("--logs", nargs="*", default=["sqlite", "nats"], choices=["sqlite", "nats"])
    arguments.add_argument("--shares", nargs="*", type=float, default=SHARES, help="subscriptions that match")
    arguments.add_argument("--sites", nargs="*", type=int, default=[1, 3], choices=[1, 3])
    given = arguments.parse_args()
    run(given.subscriptions, given.events, given.logs, given.shares, given.sites)
