"""Values and pure rules of Kafka; no I/O."""
