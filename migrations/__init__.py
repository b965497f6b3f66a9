"""The named, numbered changes of a cluster; each with a planner and a docstring with the reason."""
