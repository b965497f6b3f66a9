"""The current state of a Connect cluster: group, workers, internal topics."""
