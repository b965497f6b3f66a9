"""Kafka's protocol through kafka-python's connections: what librdkafka has no requests for."""
