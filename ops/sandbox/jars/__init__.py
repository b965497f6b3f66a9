"""Java, and the jars of a Kafka version."""
