"""Fixtures of devices."""

from gpu.devices import faults, faulty, kernels  # noqa: F401 - fixtures
