"""Predicts the memory and time that an algorithm would need for given subscriptions.

`memory` is the model of Bittner 2008, chapter 5: thirteen parameters of the subscriptions, and a formula for
the bytes of each algorithm. `timing` is the counterpart that the thesis leaves to others: the operations that
an event causes (`operations`, counted on `trees`), and what an operation takes on this machine.

>>> from tamis_lab.costs import measure
>>> measure(["a = 1 AND (b = 2 OR c = 3)", "a = 1 AND d = 4"]).smallest()
'counting'
"""

from tamis_lab.costs.memory import MODELLED, Parameters, Shape, index_of, measure, measured_bytes, shape_of
from tamis_lab.costs.operations import Operations, count_operations
from tamis_lab.costs.timing import TIMED, Prices, calibrate, measured_microseconds

__all__ = [
    "MODELLED",
    "TIMED",
    "Operations",
    "Parameters",
    "Prices",
    "Shape",
    "calibrate",
    "count_operations",
    "index_of",
    "measure",
    "measured_bytes",
    "measured_microseconds",
    "shape_of",
]
