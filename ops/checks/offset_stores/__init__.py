"""Where source connectors keep their offsets."""
