"""The REST API of workers that have none: MirrorMaker 2 in dedicated mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from connectctl.ops.core.errors import NoRestApi


@dataclass
class WithoutRest:
    """``ConnectCalls`` of a group whose workers have no REST API: every request raises
    ``NoRestApi``.
    """

    group_id: str
    urls: tuple[str, ...] = ()

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        self._refuse()

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        url: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NoRestApi(
            f"The workers of {self.group_id} have no REST API, which this needs",
            why="they are MirrorMaker 2 in dedicated mode",
            next_step="To change connectors, edit mm2.properties and restart the process. To "
            "change offsets, stop the process first. To read: connectctl connectors "
            "list, offsets show.",
        )
