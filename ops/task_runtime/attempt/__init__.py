"""An attempt of a task in its process, and the clients it shares with other tasks there."""
