"""Generators of subscriptions and events, for benchmarks, experiments and demonstrations.

    workload = Equality(count=100_000, seed=1)
    for table in workload.subscriptions(): ...     # Arrow tables of id, expression, priority
    for event in workload.events(1000): ...        # dicts

One class per workload, one file or folder per class; `WORKLOADS` lists them by name.
"""

from tamis_lab.workloads.abe_gen import AbeGen
from tamis_lab.workloads.ads import AdsLike
from tamis_lab.workloads.base import Workload
from tamis_lab.workloads.be_gen import BeGen
from tamis_lab.workloads.book_auction import BookAuction
from tamis_lab.workloads.conjunctive import Conjunctive
from tamis_lab.workloads.dblp import DblpAuthors, DblpTitles
from tamis_lab.workloads.dense import Dense
from tamis_lab.workloads.equality import Equality
from tamis_lab.workloads.zipf_regions import ZipfRegions

WORKLOADS: dict[str, type[Workload]] = {
    workload.name: workload
    for workload in (
        Conjunctive,
        Equality,
        AbeGen,
        Dense,
        BookAuction,
        AdsLike,
        BeGen,
        ZipfRegions,
        DblpAuthors,
        DblpTitles,
    )
}

__all__ = [
    "WORKLOADS",
    "AbeGen",
    "AdsLike",
    "BeGen",
    "BookAuction",
    "Conjunctive",
    "DblpAuthors",
    "DblpTitles",
    "Dense",
    "Equality",
    "Workload",
    "ZipfRegions",
]
