"""Online book auctions: the workload of Bittner 2008, with real distributions behind its events.

tables.py      the numbers: what was on offer, at which prices, with how many bids
pool.py        the books: titles and authors
events.py      auctions as events
template.py    expressions with holes, and the figures that describe them
classes.py     the classes of subscriptions and advertisements, as templates
operands.py    the five distributions that fill the holes
auction.py     the workload
"""

from tamis_lab.workloads.book_auction.auction import ADVERTISEMENT_SCHEMA, BookAuction
from tamis_lab.workloads.book_auction.classes import ADVERTISEMENTS, SUBSCRIPTIONS
from tamis_lab.workloads.book_auction.operands import OperandDistribution

__all__ = ["ADVERTISEMENTS", "ADVERTISEMENT_SCHEMA", "SUBSCRIPTIONS", "BookAuction", "OperandDistribution"]
