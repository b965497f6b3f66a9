"""``python -m connectctl``: what the command ``connectctl`` does."""

from __future__ import annotations

from connectctl.cli.__main__ import main

if __name__ == "__main__":
    main()
