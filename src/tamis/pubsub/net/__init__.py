"""Brokers on a real network: connections, stores and clocks around the machine of `tamis.pubsub.broker`."""
