"""The rights of the principal in use."""
