"""The command line of this run of the program, for what it leaves behind."""

from __future__ import annotations

arguments: list[str] = []
"""What follows the program's name, as it was given, secrets included; set for each run of the program."""
