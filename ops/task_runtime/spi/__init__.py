"""What connectors of ``run`` implement and are given."""
