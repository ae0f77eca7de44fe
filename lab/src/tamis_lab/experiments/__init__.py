"""Tables and figures of the papers, run again: `tamis experiment list`, `tamis experiment run NAME`.

A folder per paper, named by author and year, and in it a file per table, figure or section. A file that
defines `EXPERIMENT` (see `contract`) is found by its location; there is no list to maintain. `measuring` has
what several papers need, and `side_by_side` belongs to no paper.
"""

from tamis_lab.experiments.contract import Experiment, Result, Row, Scale, parse_scale
from tamis_lab.experiments.runner import discover, run

__all__ = ["Experiment", "Result", "Row", "Scale", "discover", "parse_scale", "run"]
