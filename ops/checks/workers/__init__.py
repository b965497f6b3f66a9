"""Workers as a group."""
