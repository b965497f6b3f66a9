"""A real browser without a window, driven over the DevTools protocol through two pipes: no library,
no port, no network.

``browser()`` is Chromium or Chrome, where there is one. It loads files and tells what a person
would meet: what is drawn, how wide, in which colours, what the console says, and what was asked for
over the network.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ABSENT = "no Chromium or Chrome here (Debian: apt-get install chromium)"
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--remote-debugging-pipe",
)
# The protocol is spoken on descriptors 3 and 4, which may be in use here.
_START = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def executable() -> str | None:
    """The browser that there is."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass
class Browser:
    """One tab. ``console`` is what was printed there or went wrong, ``asked`` what was asked for;
    both of the last page.
    """

    reads: int
    writes: int
    session: str = ""
    console: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    _number: int = 0
    _left: bytes = b""
    _events: list[str] = field(default_factory=list)

    def open(
        self,
        page: Path,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        paper: bool = False,
    ) -> None:
        """Load the file, as a screen of that width shows it, or as paper does."""
        self.console.clear()
        self.asked.clear()
        self._events.clear()
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send(
            "Emulation.setEmulatedMedia", media="print" if paper else "screen", features=[scheme]
        )
        self.send("Page.navigate", url=page.absolute().as_uri())
        while "Page.loadEventFired" not in self._events:
            self._take(self._message())

    def value(self, script: str) -> Any:
        """What the expression is in the page."""
        done = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def screenshot(self, to: Path, *, whole: bool = True) -> bytes:
        """A picture of the page as a PNG, also written to a file."""
        done = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        picture = base64.b64decode(done["data"])
        to.write_bytes(picture)
        return picture

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the browser for something, and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._take(answer)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            some = os.read(self.reads, 1 << 16)
            assert some, "the browser has ended"
            self._left += some
        one, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        return message

    def _take(self, event: dict[str, Any]) -> None:
        method, params = event.get("method", ""), event.get("params", {})
        self._events.append(method)
        if method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.console.append(json.dumps(params))


@contextmanager
def browser(home: Path) -> Iterator[Browser]:
    """A browser with a profile of its own in ``home``; ended afterwards."""
    program = executable()
    assert program, ABSENT
    (to_reads, to_writes), (from_reads, from_writes) = os.pipe(), os.pipe()
    command = [sys.executable, "-c", _START, str(to_reads), str(from_writes), program, *_FLAGS]
    with (home / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--user-data-dir={home / 'profile'}", "about:blank"],
            pass_fds=(to_reads, from_writes),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ | {"HOME": str(home)},
            start_new_session=True,
        )
    os.close(to_reads)
    os.close(from_writes)
    tab = Browser(from_reads, to_writes)
    try:
        target = tab.send("Target.createTarget", url="about:blank")["targetId"]
        tab.session = tab.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.send(f"{domain}.enable")
        yield tab
    finally:
        os.close(from_reads)
        os.close(to_writes)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
