"""Clients of Kafka, of workers and of Spark; their errors become those of ``ops.core.errors``."""
