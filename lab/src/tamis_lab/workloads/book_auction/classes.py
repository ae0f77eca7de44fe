"""What people ask for and offer: three classes of subscriptions, eight of advertisements.

From Bittner 2008, sections 3.3 and 3.4 and tables B.1 and B.2. The figures with the trees are not in the text
that has come down to us; these trees have all the counts of tables 3.2, 3.3 and 5.2 and agree with the worked
examples. Where the prose and the tables contradict each other, the tables win:

- class 2: the prose swaps the prices of used hardcovers and of new softcovers;
- class 3: the prose asks for a signed copy *without* bids, the counts and examples need signed *or* no bids;
- advertisements of class 2 name an author and those of class 3 a title, the captions of their ranges are
  swapped.

The phrase that a title or author contains is, as in the experiments there, a whole title or name.
"""

from tamis_lab.workloads.book_auction.template import Dollars, Name, Predicate, Template, all_of, any_of

_CATEGORY = Predicate("category = ", Name("category"))
_TITLE = Predicate("title = ", Name("title"))
_AUTHOR = Predicate("author = ", Name("author"))
_NEW, _USED = Predicate("condition = 'new'"), Predicate("condition = 'used'")
_HARDCOVER, _SOFTCOVER = Predicate("format = 'hardcover'"), Predicate("format = 'softcover'")
_SIGNED = Predicate("special = 'signed'")
_BUY_IT_NOW = Predicate("buy_it_now = TRUE")
_NO_BIDS = Predicate("bids = 0")
_LAST_DAY, _LAST_HOUR = Predicate("ending_within < 1440"), Predicate("ending_within < 60")


def _below(low: int, high: int) -> Predicate:
    return Predicate("price < ", Dollars(low, high))


def _above(low: int, high: int) -> Predicate:
    return Predicate("price > ", Dollars(low, high))


SUBSCRIPTIONS: dict[int, Template] = {
    # A title on its last day, at a price that depends on the condition.
    1: all_of(
        _TITLE,
        any_of(all_of(_NEW, _below(5, 10)), all_of(_below(1, 5), _USED)),
        _LAST_DAY,
    ),
    # The same, at a price that depends on the format too.
    2: all_of(
        _TITLE,
        any_of(
            all_of(_HARDCOVER, any_of(all_of(_NEW, _below(12, 18)), all_of(_below(8, 13), _USED))),
            all_of(_SOFTCOVER, any_of(all_of(_NEW, _below(10, 15)), all_of(_below(5, 10), _USED))),
        ),
        _LAST_DAY,
    ),
    # A collector's: a category or an author, and about to go for nothing, or signed.
    3: all_of(
        any_of(_CATEGORY, _AUTHOR),
        any_of(all_of(_LAST_HOUR, any_of(_NO_BIDS, _SIGNED)), all_of(_BUY_IT_NOW, _SIGNED)),
    ),
}


def _fixed_price_or_signed(subject: Predicate) -> Template:
    return all_of(subject, any_of(all_of(_BUY_IT_NOW, _above(5, 30)), all_of(_above(15, 30), _SIGNED)))


_BY_CONDITION = any_of(all_of(_USED, _above(3, 20)), all_of(_above(8, 25), _NEW))
_BY_FORMAT = any_of(all_of(_HARDCOVER, _above(9, 20)), all_of(_above(8, 18), _SOFTCOVER))
_BY_FORMAT_AND_CONDITION = any_of(
    all_of(_HARDCOVER, any_of(all_of(_NEW, _above(9, 25)), all_of(_above(9, 20), _USED))),
    all_of(_SOFTCOVER, any_of(all_of(_NEW, _above(8, 22)), all_of(_above(3, 18), _USED))),
)

ADVERTISEMENTS: dict[int, Template] = {
    1: _fixed_price_or_signed(_CATEGORY),
    2: _fixed_price_or_signed(_AUTHOR),
    3: all_of(_TITLE, _BY_CONDITION),
    4: all_of(_TITLE, _BY_FORMAT),
    5: all_of(_TITLE, _BY_FORMAT_AND_CONDITION),
    6: _BY_CONDITION,
    7: _BY_FORMAT,
    8: _BY_FORMAT_AND_CONDITION,
}

USED_BELOW_NEW: dict[int, tuple[tuple[int, int], ...]] = {5: ((2, 1), (4, 3)), 8: ((1, 0), (3, 2))}
"""For advertisement classes that ask less for used books than for new ones: (hole of the used price, hole
of the new price). Their ranges overlap; pairs in the wrong order are drawn again."""
