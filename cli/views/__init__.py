"""How nouns are shown: rows for people, members for scripts."""
