"""Brokers on a real network: connections, stores and clocks around `tamis.pubsub.broker.machine`."""
