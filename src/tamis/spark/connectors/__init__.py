"""Kafka, Delta Lake and NATS JetStream."""
