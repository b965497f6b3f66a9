"""The interfaces that connectors of ``run`` implement and use."""
