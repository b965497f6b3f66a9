"""The entry point, ``python -m connectctl`` and ``python -m connectctl.cli``: quiet from the first instruction on."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the program. A ^C while its modules are loaded ends it as any program without a handler, without a word."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from connectctl.cli import main as front

    front.main()


if __name__ == "__main__":
    main()
