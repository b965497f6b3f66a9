"""Values and pure rules of Kafka Connect; no I/O."""
