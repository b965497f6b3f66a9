"""ACLs of workers and connectors."""
