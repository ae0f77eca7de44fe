"""Write the snapshot that the workers of the service share: python publish.py campaigns.csv ads.tamis."""

import sys

import pyarrow.csv

import tamis


def publish(campaigns: str, snapshot: str) -> None:
    """Replace the snapshot with the campaigns of a table, atomically."""
    index = tamis.Index()
    index.add_table(pyarrow.csv.read_csv(campaigns))
    index.save(snapshot, overwrite=True)
    print(f"{len(index)} campaigns in {snapshot}")


if __name__ == "__main__":
    publish(*sys.argv[1:])
