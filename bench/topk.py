"""`make bench-topk`: top-k compared with matching all, and with the published algorithms.

Prints two tables and writes bench/results/; the published algorithms run at scales up to 100K.

Optional arguments: scales such as 100K,1M, then names of workloads.
"""

import sys

from tamis_lab.benchmark.topk import run

if __name__ == "__main__":
    scales, *workloads = sys.argv[1:] or ["100K,1M"]
    run(workloads or ("conjunctive", "equality-3-4", "dense", "arbitrary"), scales=scales)
