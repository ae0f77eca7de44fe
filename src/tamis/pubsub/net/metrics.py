"""Counters of a broker in the format of Prometheus, on a port of their own."""

import asyncio
from collections.abc import Callable

from tamis.pubsub.broker.machine import Broker


def render(broker: Broker) -> str:
    """The page that Prometheus reads.

    >>> print(render(Broker("b1", [])).splitlines()[1])
    tamis_broker_published_total{broker="b1"} 0
    """
    label = f'{{broker="{broker.name}"}}'
    lines = []
    for name, value in broker.counters.as_dict().items():
        lines += [f"# TYPE tamis_broker_{name}_total counter", f"tamis_broker_{name}_total{label} {value}"]
    clients = broker.clients.values()
    gauges = {
        "waiting_events": broker.waiting_events,
        "waiting_notifications": sum(len(client.waiting) for client in clients),
        "clients_attached": sum(client.attached for client in clients),
        "subscriptions": sum(len(client.subscriptions) for client in clients),
        "routing_entries": sum(len(table) for table in broker.spreading.subscriptions_from.values()),
    }
    for name, value in gauges.items():
        lines += [f"# TYPE tamis_broker_{name} gauge", f"tamis_broker_{name}{label} {value}"]
    return "\n".join(lines) + "\n"


async def serve(host: str, port: int, page: Callable[[], str]) -> asyncio.Server:
    """Answer every HTTP GET of /metrics with the page, and anything else with 404."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), timeout=10)
            found = head.split(b" ", 2)[1:2] == [b"/metrics"]
            body = page().encode() if found else b"see /metrics\n"
            status = b"200 OK" if found else b"404 Not Found"
            writer.write(
                b"HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %d\r\n"
                b"Connection: close\r\n\r\n%s" % (status, len(body), body)
            )
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(answer, host, port)
