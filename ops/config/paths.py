"""The locations of files: XDG directories, each of which an environment variable overrides."""

from __future__ import annotations

import os
from pathlib import Path


def _home(variable: str, default: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / default) / "connectctl"


def config_file() -> Path:
    """Return the user's context file: ``$CONNECTCTL_CONFIG``, else
    ``$XDG_CONFIG_HOME/connectctl/config.yaml``.
    """
    named = os.environ.get("CONNECTCTL_CONFIG")
    return Path(named) if named else _home("XDG_CONFIG_HOME", ".config") / "config.yaml"


def state_directory() -> Path:
    """Return the directory of state that persists between commands:
    ``$XDG_STATE_HOME/connectctl``.
    """
    return _home("XDG_STATE_HOME", ".local/state")


def journal_directory() -> Path:
    """Return the journal and its backups: ``$CONNECTCTL_JOURNAL``, else the state directory."""
    named = os.environ.get("CONNECTCTL_JOURNAL")
    return Path(named) if named else state_directory()


def cache_directory() -> Path:
    """Return the directory of files that can be downloaded again:
    ``$XDG_CACHE_HOME/connectctl``.
    """
    return _home("XDG_CACHE_HOME", ".cache")


def sandbox_contexts() -> list[Path]:
    """Return the context files of the sandboxes that are up."""
    return sorted(sandbox_directory("_").parent.glob("*/context.yaml"))


def sandbox_directory(name: str) -> Path:
    return state_directory() / "sandbox" / name
