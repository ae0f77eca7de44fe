"""A network of brokers in one process and in virtual time: the real state machines, with faults on request.

`Simulator` hosts the brokers of `tamis_lab.brokers`; `Topology` says which are linked; `invariants` has the
conditions that are checked after every step.
"""

from tamis_lab.simulation.simulator import Faults, Simulator
from tamis_lab.simulation.topology import Topology

__all__ = ["Faults", "Simulator", "Topology"]
