"""An attempt of a task in its process, and what it shares with others there."""
