"""Three real servers of NATS on loopback that replicate among themselves."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

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
