"""The entry point of ``python -m connectctl`` and ``python -m connectctl.cli``; ^C never prints a
traceback.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Run the program. ^C while its modules are loaded ends it without a message: SIGINT has its
    default action.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from connectctl.cli import main as program

    program.main()


if __name__ == "__main__":
    main()
