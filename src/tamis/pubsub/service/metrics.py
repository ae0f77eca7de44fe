"""What Prometheus sees of a router, through its official client."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tamis._extras import missing_extra
from tamis.pubsub.names import name_of, names_in
from tamis.pubsub.service.config import ConfigError

if TYPE_CHECKING:
    from tamis.pubsub.service.server import RouterServer

COUNTERS = {
    "events": "Events that were routed.",
    "deliveries": "Events that were put into queues, once for each.",
    "dead": "Events that could not be processed.",
    "match_seconds": "Time spent on matching.",
    "leases_taken": "Partitions that were taken.",
    "leases_lost": "Partitions that were lost to another router.",
    "rollbacks": "Times that a log turned out to be an older copy of itself, or to have lost its state.",
    "dropped": "Deliveries that were dropped because of limits.",
    "forgotten": "Subscribers that were forgotten.",
    "forwarded": "Events that came over links.",
    "came": "Events from other sites that were for this one.",
    "came_wanted": "Those of them that somebody here wants.",
    "repeated": "Events that came over links and were known already.",
    "missing": "Events that were dropped at neighbours before they were taken.",
    "disbelieved": "Records about other sites that were not taken from neighbours.",
}
MOST_SUBSCRIBERS = 1_000
"""Of more subscribers only those that lag most are shown."""


class RouterCollector:
    """The metrics of one router, read when they are asked for."""

    def __init__(self, server: "RouterServer") -> None:
        """Take the router."""
        self._server = server

    def collect(self) -> Iterator[Any]:
        """All metrics now."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415 - an extra

        server = self._server
        if not server.ready.is_set():
            return
        router = server.router
        for name, help in COUNTERS.items():
            value = getattr(router.counters, name) + (router.table.rollbacks if name == "rollbacks" else 0)
            yield CounterMetricFamily(f"tamis_router_{name}", help, value=value)
        gauges = {
            "subscriptions": ("Subscriptions in the index.", len(router.table.index)),
            "subscribers": ("Subscribers that have a queue.", len(router.table.queues)),
            "partitions": ("Partitions that this router has.", len(router.leases)),
            "unreadable": ("Records that could not be read.", router.table.unreadable),
            "state_lost": ("Whether somebody has purged the stream of state.", int(router.table.is_lost)),
            "ready": ("Whether the router can work.", int(server.is_ready)),
        }
        for name, (help, value) in gauges.items():
            yield GaugeMetricFamily(f"tamis_router_{name}", help, value=value)
        links = GaugeMetricFamily("tamis_router_link_up", "Whether a link works.", labels=["site"])
        for link in server.network.links.values():
            links.add_metric([link.neighbour], int(link.trouble is None))
        yield links
        names = [name for name in list(server.retention.queues) if names_in(name)]
        lags = {name: server.retention.lag(name) for name in names}
        events = GaugeMetricFamily("tamis_queue_lag_events", "Events that wait.", labels=["subscriber"])
        sizes = GaugeMetricFamily("tamis_queue_lag_bytes", "Bytes that wait.", labels=["subscriber"])
        most = sorted(lags, key=lambda name: (-lags[name][0], name))[:MOST_SUBSCRIBERS]
        for name in most:
            events.add_metric([name_of(name)], lags[name][0])
            sizes.add_metric([name_of(name)], lags[name][1])
        yield events
        yield sizes


def metrics_text(server: "RouterServer") -> bytes:
    """All metrics in Prometheus' text format."""
    try:
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 - an extra
    except ImportError:
        raise ConfigError(missing_extra("/metrics", "router")) from None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RouterCollector(server))
    return bytes(generate_latest(registry))
