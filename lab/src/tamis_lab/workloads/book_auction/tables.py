"""The numbers of Bittner 2008, appendix A: fiction books on offer at eBay US on 8 July 2005.

`tables.json` holds the tables as they are printed, with the probabilities of tables A.1 to A.6 as counts: all
of them are multiples of 1/154,574. What the print gets wrong is put right here or where it is used:

- *Signed or first edition.* As captioned, 15.5 % of the books are signed and 1.8 % are first editions, but
  the text computes with 1.1 % signed ones. The captions of A.1 and A.2, and of A.4 and A.5, are very probably
  swapped; `joint_probabilities(swapped_captions=True)` reads them so.
- *Categories.* Their shares in A.1 to A.6 differ from those of A.16 (Romance: 17.2 % and 19.2 %). Events
  follow the former, the number of books in a category the latter.
- *Prices.* The lowest bin is printed as 0.00 to 1.00 and said to have 100 values: it is 0.01 to 1.00.
- *Misprints.* The second row 21 of A.9 is 22; "9,84" and "18, 206" in A.16 are 984 and 18,206.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from tamis_lab.workloads.sampling import Floats, Ints

FORMATS = ("other", "mixed lot", "softcover", "hardcover")
SPECIALS = ("1st edition", "signed", "unspecified")
CONDITIONS = ("new", "used")


@dataclass(frozen=True)
class Tables:
    """Appendix A, one row per category where there are rows."""

    categories: tuple[str, ...]
    joint_counts: Ints
    """Items by (category, format, special, condition), captions as printed."""
    buy_it_now: Floats
    items: Ints
    bids_bins: Ints
    """Lowest and highest number of bids of each column of `bids`."""
    bids: Floats
    price_bins: Ints
    """Lowest and highest price, in cents, of each column of `price`."""
    price: Floats

    def joint_probabilities(self, swapped_captions: bool = True) -> Floats:
        """The probability of each (category, format, special, condition), 528 of them.

        >>> load_tables().joint_probabilities().shape
        (22, 4, 3, 2)
        >>> signed = SPECIALS.index("signed")
        >>> [round(float(load_tables().joint_probabilities(swapped)[:, :, signed].sum()), 3)
        ...  for swapped in (True, False)]
        [0.018, 0.155]
        """
        counts = self.joint_counts
        if swapped_captions:
            counts = counts[:, :, [SPECIALS.index(name) for name in ("signed", "1st edition", "unspecified")]]
        probabilities: Floats = counts / counts.sum()
        return probabilities


@cache
def load_tables() -> Tables:
    """The tables that come with the package.

    >>> len(load_tables().categories), int(load_tables().items.sum())
    (22, 141602)
    """
    printed = json.loads(resources.files(__package__).joinpath("tables.json").read_text(encoding="utf-8"))
    joint = np.array(
        [
            [printed["joint_counts"][f"{condition}, {special}"] for condition in CONDITIONS]
            for special in SPECIALS
        ]
    )
    return Tables(
        categories=tuple(printed["categories"]),
        joint_counts=joint.transpose(2, 3, 0, 1),
        buy_it_now=np.array(printed["buy_it_now"]),
        items=np.array(printed["items"]),
        bids_bins=np.array(printed["bids_bins"]),
        bids=np.array(printed["bids"]),
        price_bins=np.array(printed["price_bins_cents"]),
        price=np.array(printed["price"]),
    )
