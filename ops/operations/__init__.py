"""What can be done with a cluster; each operation observes, plans and has its steps."""
