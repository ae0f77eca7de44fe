"""The books that are auctioned: which there are in each category, who wrote them, and what they are called.

Four parameters shape the pool (Bittner 2008, section 3.2.2): auctions per book, books per author, the
probability that an author writes in a further category, and the probability that a book takes a title that is
already used. The fewer auctions per book, the more titles there are, and the fewer subscriptions ask for the
same one.

Left open there and chosen here: a category has its items divided by the auctions per book, rounded, and at
least one book; an author writes in *at least* n categories with probability p^(n-1); a category that no
author chose borrows one from all. Titles and authors are numbers that `title_texts` and `author_texts` put
into words.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis_lab.workloads.sampling import Ints, stream
from tamis_lab.workloads.text import concat, texts, words

_ADJECTIVES = words(
    "Silver Quiet Broken Golden Hidden Last Crimson Forgotten Distant Burning Frozen Secret Wild Lonely "
    "Ancient Bitter Shining Empty Winter Summer Hollow Gentle Restless Scarlet Wandering Midnight Paper "
    "Stolen Tall Blue Green White Black Northern Southern Eastern Western Lost Second Endless"
)
_NOUNS = words(
    "Garden River Tower Island Letter Mirror Forest Harbour Crown Shadow Lantern Bridge Mountain Song "
    "Window Road Ocean Clock Library Orchard Stranger Daughter Captain Secret Castle Season Promise Storm "
    "Village Painter Kingdom Voyage Valley Ghost Gate Train Desert Hunter Journey Queen Star Stone Market "
    "Meadow Winter Fortress House Sailor Machine Wolf"
)
_FIRST_NAMES = words(
    "Anna Ben Clara David Elena Felix Grace Hugo Irene Jonas Karla Leon Maria Nils Olga Paul Quentin Rosa "
    "Simon Tessa Ursula Victor Wanda Xavier Yvonne Zoe Arthur Bella Carl Dora"
)
_LAST_NAMES = words(
    "Abbott Baker Carver Dalton Ellis Fisher Grant Harper Irving Jensen Keller Lowell Mercer Norris "
    "Osborne Parker Quinn Rivers Sawyer Turner Underhill Vance Walker Young Zeller Archer Bishop Cooper "
    "Draper Forester Gardener Hunter Jordan Knight Lambert Marsh Nolan Page Reed Stone"
)


CHAPTER_5 = {"auctions_per_book": 100, "books_per_author": 5, "further_category": 0.1, "repeated_title": 0.01}
"""The parameters of most experiments of Bittner 2008."""


@dataclass(frozen=True)
class BookPool:
    """All books, those of a category next to each other.

    `first_book[c]` up to `first_book[c + 1]` are the books of category c; `title` and `author` have a row per
    book.
    """

    first_book: Ints
    title: Ints
    author: Ints
    titles: int
    authors: int

    def __len__(self) -> int:
        """The number of books."""
        return len(self.title)

    def draw(self, rng: np.random.Generator, category: Ints) -> Ints:
        """A book of each of the categories, all of its books being equally likely."""
        first, end = self.first_book[category], self.first_book[category + 1]
        return first + (rng.random(category.size) * (end - first)).astype(np.int64)


def make_pool(
    seed: int,
    items: Ints,
    *,
    auctions_per_book: float,
    books_per_author: float,
    further_category: float,
    repeated_title: float,
) -> BookPool:
    """Draw a pool for categories with this many items.

    >>> pool = make_pool(1, np.array([500, 1500]), **CHAPTER_5)
    >>> len(pool), pool.authors, pool.first_book.tolist()
    (20, 4, [0, 5, 20])
    """
    rng = stream(seed, "book-auction", "pool")
    books = np.maximum(1, np.rint(items / auctions_per_book).astype(np.int64))
    first_book = np.concatenate([[0], np.cumsum(books)])
    total = int(first_book[-1])
    authors = max(1, round(total / books_per_author))
    writes_in = _categories_of_authors(rng, authors, len(items), further_category)
    author = np.empty(total, dtype=np.int64)
    for category, count in enumerate(books.tolist()):
        writers = np.flatnonzero(writes_in[:, category])
        drawn = rng.integers(writers.size or authors, size=count)
        author[first_book[category] : first_book[category + 1]] = writers[drawn] if writers.size else drawn
    title, titles = _titles(rng, total, repeated_title)
    return BookPool(first_book, title, author, titles, authors)


def _categories_of_authors(
    rng: np.random.Generator, authors: int, categories: int, further_category: float
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    writes_in = np.zeros((authors, categories), dtype=np.bool_)
    writers = np.arange(authors)
    for _ in range(categories):
        undecided = writers
        while undecided.size:
            drawn = rng.integers(categories, size=undecided.size)
            taken = writes_in[undecided, drawn]
            writes_in[undecided[~taken], drawn[~taken]] = True
            undecided = undecided[taken]
        writers = writers[rng.random(writers.size) < further_category]
    return writes_in


def _titles(rng: np.random.Generator, books: int, repeated_title: float) -> tuple[Ints, int]:
    """The title of each book, and how many different ones there are."""
    repeats = rng.random(books) < repeated_title
    repeats[0] = False
    used = np.cumsum(~repeats)
    title = np.where(repeats, (rng.random(books) * used).astype(np.int64), used - 1)
    return title, int(used[-1])


def title_texts(numbers: Ints) -> pa.Array:
    """Titles in words; each number has its own.

    >>> title_texts(np.array([0, 41, 2000])).to_pylist()
    ['The Silver Garden', 'The Quiet River', 'The Silver Garden, Volume 2']
    """
    return concat("The ", _two_words(numbers, _ADJECTIVES, _NOUNS, ", Volume "))


def author_texts(numbers: Ints) -> pa.Array:
    """Names of authors in words; each number has its own.

    >>> author_texts(np.array([0, 31, 1200])).to_pylist()
    ['Anna Abbott', 'Ben Baker', 'Anna Abbott 2']
    """
    return _two_words(numbers, _FIRST_NAMES, _LAST_NAMES, " ")


def _two_words(numbers: Ints, first: tuple[str, ...], second: tuple[str, ...], again: str) -> pa.Array:
    """Pair the words; when all pairs are used, start again and count the rounds."""
    rounds = numbers // (len(first) * len(second))
    pair = concat(
        texts(first).take(pa.array(numbers % len(first))),
        " ",
        texts(second).take(pa.array(numbers // len(first) % len(second))),
    )
    if not rounds.any():
        return pair
    counted = concat(pair, again, pc.cast(pa.array(rounds + 1), pa.large_string()))
    return pc.if_else(pa.array(rounds > 0), counted, pair)
