"""Zombie fencing of transactional ids."""
