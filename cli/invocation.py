"""The command line of this process, to be shown in its results."""

from __future__ import annotations

arguments: list[str] = []
"""The arguments as given, secrets included; set for each invocation."""
cluster_options: list[str] = []
"""The options in them that name the cluster, with their values; set for each invocation."""
