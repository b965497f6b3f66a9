"""Connect's REST API."""
