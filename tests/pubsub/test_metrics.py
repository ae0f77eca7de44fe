"""What Prometheus reads of a broker."""

from tamis.pubsub.broker.machine import Broker
from tamis.pubsub.net.metrics import render


def test_counters_are_exact_above_a_million() -> None:
    broker = Broker("b1", [])
    broker.counters.published = 1_234_567
    broker.counters.forwarded = 98_765_432_109_876_543
    broker.counters.filter_seconds = 1_234_567.891
    page = render(broker)
    assert 'tamis_broker_published_total{broker="b1"} 1234567\n' in page
    assert 'tamis_broker_forwarded_total{broker="b1"} 98765432109876543\n' in page
    assert 'tamis_broker_filter_seconds_total{broker="b1"} 1234567.891\n' in page
