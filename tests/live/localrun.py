"""``connectctl`` in a process of its own, which computes by itself what a run gives to Spark.

For tests of what a run is to workers, to other commands and to its group. It starts in a tenth of
the time.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # The directory of this file has the names of its modules without their package.
    sys.path[0] = str(Path(__file__).parents[1])

    from connectctl.cli.__main__ import main
    from connectctl.ops.clients.spark import session
    from fakes import localspark

    session.open_session = localspark.open_session
    main()
