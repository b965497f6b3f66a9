"""What the README shows is what happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from documentation import ROOT, Shown, lines
from live.shownlines import LAST, MADE, addresses, carry_out, fresh, run


@pytest.mark.live
def test_the_lines_of_the_readme_run_in_order_on_a_fresh_sandbox(tmp_path: Path) -> None:
    """Those of its table too. Its own cluster, at its end, is the sandbox."""
    environment = fresh(tmp_path)
    work = tmp_path / "work"
    typed = lines(ROOT / "README.md")
    assert len(typed) > 20
    try:
        for line in typed:
            if line.startswith("export "):
                environment |= addresses(tmp_path / "state")
            elif line != LAST:
                run(Shown(line, ""), environment, work)
    finally:
        assert carry_out(LAST, environment, work).code == 0
        for made in MADE:
            (Path("/tmp") / made).unlink(missing_ok=True)
