"""Publications as conjunctions, in the shape of the two DBLP data sets of Sadoghi and Jacobsen 2012, table
III.

There, the authors or the title of a publication become a conjunction of equalities over 677 attributes with
26³ values: two letters of a text choose the attribute, the next three the value. The author data set has
760,000 publications with 8 predicates on average, the title data set 250,000 with 35. The texts are not here;
what is generated has that shape and the skew of names and words:

- an *author* is a name of two to four pieces, a *title* many words; a piece or word is one equality;
- attributes follow the frequencies of letters in English, so that few of them are in most expressions;
- productive authors and common words are drawn by a Zipf distribution.

An event is a publication too: it satisfies at least the subscription that was made of it, and those by a
subset of its authors. For the paper's runs with a match probability on these domains use
`BeGen(attributes=677, cardinality=26**3, attribute_alpha=1, ...)`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tamis_lab.workloads.base import BLOCK, EVENT_BLOCK, EventDict, Workload, number_events
from tamis_lab.workloads.sampling import Floats, Ints, Zipf, stream
from tamis_lab.workloads.text import concat, join_groups, numbered

_LETTER_FREQUENCIES = np.array(
    [
        *(8.2, 1.5, 2.8, 4.3, 12.7, 2.2, 2.0, 6.1, 7.0, 0.15, 0.77, 4.0, 2.4),
        *(6.7, 7.5, 1.9, 0.1, 6.0, 6.3, 9.1, 2.8, 0.98, 2.4, 0.15, 2.0, 0.07),
    ]
)
ATTRIBUTES = 26**2 + 1
"""A pair of letters, or something else."""
CARDINALITY = 26**3
_SHARE_OF_SOMETHING_ELSE = 0.01


@dataclass(frozen=True)
class _Publications(Workload):
    """Publications made of groups of equalities: authors with their pieces of name, or single words."""

    count: int = 1_000_000
    seed: int = 1
    groups: int = 100_000
    """How many authors, or words, there are."""
    group_alpha: float = 0.8

    groups_per_publication: ClassVar[tuple[int, int]]
    pieces_of_group: ClassVar[tuple[float, ...]]
    """How many of the groups have 1, 2, ... pieces."""

    @cached_property
    def _names(self) -> pa.Array:
        return numbered("d", ATTRIBUTES)

    @property
    def event_schema(self) -> pa.Schema:
        """Integers in every attribute."""
        return pa.schema([(name, pa.int64()) for name in self._names.to_pylist()])

    @cached_property
    def _popularity(self) -> Zipf:
        return Zipf(self.groups, self.group_alpha)

    @cached_property
    def _pieces(self) -> Ints:
        """For every group a row of pieces: attribute * CARDINALITY + value, -1 where it has fewer."""
        rng = stream(self.seed, self.name, "groups")
        most = len(self.pieces_of_group)
        attribute = rng.choice(ATTRIBUTES, size=(self.groups, most), p=_attribute_frequencies())
        pieces = attribute * CARDINALITY + rng.integers(CARDINALITY, size=attribute.shape)
        sizes = rng.choice(most, size=self.groups, p=self.pieces_of_group) + 1
        return np.where(np.arange(most) < sizes[:, None], pieces, -1)

    def _publications(self, block: int) -> tuple[Ints, Ints, Ints]:
        """A block of publications: their sizes, and the attribute and value of each of their equalities."""
        rng = stream(self.seed, self.name, "subscriptions", block)
        least, most = self.groups_per_publication
        groups = self._popularity.draw(rng, (BLOCK, most))
        pieces = self._pieces[groups]
        used = np.arange(most) < rng.integers(least, most + 1, size=BLOCK)[:, None]
        pieces = np.where(used[:, :, None], pieces, -1).reshape(BLOCK, -1)
        pieces.sort(axis=1)
        attribute = pieces // CARDINALITY
        # One value for an attribute: the first of several.
        keep = pieces >= 0
        keep[:, 1:] &= attribute[:, 1:] != attribute[:, :-1]
        return keep.sum(axis=1), attribute[keep], pieces[keep] % CARDINALITY

    def _expressions(self, block: int) -> pa.Array:
        sizes, attribute, value = self._publications(block)
        text = concat(self._names.take(pa.array(attribute)), " = ", self._values.take(pa.array(value)))
        return join_groups(text, sizes, " AND ")

    @cached_property
    def _values(self) -> pa.Array:
        return numbered("", CARDINALITY)

    def _events(self, block: int) -> list[EventDict]:
        """Every 16th or so publication of a block of subscriptions."""
        last_block = max(0, self.count - 1) // BLOCK
        source = block % (last_block + 1)
        available = min(BLOCK, max(1, self.count - source * BLOCK))
        chosen = stream(self.seed, self.name, "events", block).integers(available, size=EVENT_BLOCK)
        sizes, attribute, value = self._publications(source)
        ends = np.cumsum(sizes)
        spans = list(zip((ends - sizes)[chosen].tolist(), ends[chosen].tolist(), strict=True))
        rows = [[column[start:end].tolist() for start, end in spans] for column in (attribute, value)]
        return number_events(self._names, *rows)


@dataclass(frozen=True)
class DblpAuthors(_Publications):
    """The authors of publications: about 8 equalities.

    >>> table = DblpAuthors(count=5_000).subscriptions_table()
    >>> round(sum(text.count(" = ") for text in table["expression"].to_pylist()) / 5_000)
    8
    """

    name: ClassVar[str] = "dblp-authors"
    groups_per_publication: ClassVar[tuple[int, int]] = (1, 5)
    pieces_of_group: ClassVar[tuple[float, ...]] = (0, 0.4, 0.5, 0.1)

    count: int = 760_000


@dataclass(frozen=True)
class DblpTitles(_Publications):
    """The titles of publications: about 35 equalities.

    >>> table = DblpTitles(count=5_000).subscriptions_table()
    >>> round(sum(text.count(" = ") for text in table["expression"].to_pylist()) / 5_000)
    35
    """

    name: ClassVar[str] = "dblp-titles"
    groups_per_publication: ClassVar[tuple[int, int]] = (22, 55)
    pieces_of_group: ClassVar[tuple[float, ...]] = (1,)

    count: int = 250_000


def _attribute_frequencies() -> Floats:
    letters = _LETTER_FREQUENCIES / _LETTER_FREQUENCIES.sum()
    pairs = np.outer(letters, letters).ravel() * (1 - _SHARE_OF_SOMETHING_ELSE)
    frequencies: Floats = np.append(pairs, _SHARE_OF_SOMETHING_ELSE)
    return frequencies
