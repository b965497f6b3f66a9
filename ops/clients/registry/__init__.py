"""Schema Registry, by confluent-kafka's client. Imported only where a converter needs it."""
