"""Brokers on a real network: TCP, files and clocks around the state machine of `tamis.pubsub.broker`."""
