"""``doctor --heal``: cures of what is transient."""
