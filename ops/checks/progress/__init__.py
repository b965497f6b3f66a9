"""Source connectors that run and stand still."""
