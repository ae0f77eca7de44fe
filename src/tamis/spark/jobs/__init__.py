"""Jobs: a YAML file that says where events and subscriptions come from and where matches go.

`model` says what a file may contain, `load` reads one and explains what is wrong with it, `frames` turns its
sources and sinks into DataFrames, `run` runs it, `progress` shows its progress, `report` summarises the run.
"""

from tamis.spark.jobs.load import InvalidJobError, load_job, parse_job
from tamis.spark.jobs.model import Job
from tamis.spark.jobs.report import JobReport
from tamis.spark.jobs.run import run_job

__all__ = ["InvalidJobError", "Job", "JobReport", "load_job", "parse_job", "run_job"]
