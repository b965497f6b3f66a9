"""The converters whose schemas are in a Schema Registry: Avro, JSON Schema and Protobuf."""
