"""What the principal in use may do."""
