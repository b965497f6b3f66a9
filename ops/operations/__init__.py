"""The operations on a cluster; each observes, plans and has its steps."""
