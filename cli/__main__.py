"""``python -m connectctl.cli``."""

from connectctl.cli.main import main

main()
