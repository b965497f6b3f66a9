"""The named, numbered changes of a cluster; each a planner with a docstring that says why."""
