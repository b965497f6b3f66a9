"""Fencing transactional ids: look, decide, do, prove."""
