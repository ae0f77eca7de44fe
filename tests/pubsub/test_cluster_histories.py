"""Random histories of two sites on three real NATS servers; failures name seeds."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from pubsub.random_cluster_history import play
from servers import NatsServer, free_ports


@contextmanager
def started(program: str, folder: Path) -> Iterator[list[NatsServer]]:
    """Three servers that replicate among themselves."""
    ports = free_ports(3)
    routes = ",".join(f"nats://127.0.0.1:{port}" for port in ports)
    with ExitStack() as stack:
        servers = []
        for number, port in enumerate(ports):
            place = folder / f"n{number}"
            place.mkdir()
            more = ("-n", f"n{number}", "--cluster_name", "tamis", "--cluster", f"nats://127.0.0.1:{port}")
            server = NatsServer(program, place, *more, "--routes", routes)
            servers.append(server.start())
            stack.callback(server.stop)
        yield servers


@pytest.mark.slow
@pytest.mark.timeout(0)  # a busy machine is no fault
@pytest.mark.parametrize("block", range(5))
def test_histories_on_three_servers(nats_program: str, tmp_path: Path, block: int) -> None:
    with started(nats_program, tmp_path) as servers:
        for seed in range(10 * block, 10 * (block + 1)):
            play(seed, tmp_path, servers)
