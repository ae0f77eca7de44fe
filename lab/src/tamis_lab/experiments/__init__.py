"""Tables and figures of the papers, run again: `tamis experiment list`, `tamis experiment run NAME`.

One file per experiment. A file that defines `EXPERIMENT` (see `contract`) is found by its being here; there
is no list to keep.
"""

from tamis_lab.experiments.contract import Experiment, Result, Row, Scale, parse_scale
from tamis_lab.experiments.runner import discover, run

__all__ = ["Experiment", "Result", "Row", "Scale", "discover", "parse_scale", "run"]
