"""A network of brokers in one process and in virtual time: the real state machines, with faults on request.

`Simulator` hosts the brokers of `tamis.pubsub`; `Topology` says who is linked to whom; `invariants` has what
must hold after every step, whatever happens.
"""

from tamis_lab.simulation.simulator import Faults, Simulator
from tamis_lab.simulation.topology import Topology

__all__ = ["Faults", "Simulator", "Topology"]
