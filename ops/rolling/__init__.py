"""Changing one worker after the other while the cluster serves: plan, gates, steps."""
