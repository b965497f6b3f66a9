"""How each kind of object is shown: rows for users, JSON members for scripts."""
