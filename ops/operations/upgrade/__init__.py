"""Rolling changes of workers: restart order, health gates, rollback."""
