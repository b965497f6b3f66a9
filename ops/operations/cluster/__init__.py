"""A Connect cluster as it is: group, workers, internal topics."""
