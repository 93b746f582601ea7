"""Kafka: a worker that reads a topic and writes another, with one broker."""
