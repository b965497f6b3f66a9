"""The ``applications`` section of a context: stream applications, and how their instances are
changed and restarted.

::

    applications:
      orders-totals:
        instances: [app-1:7001, app-2:7001]
        driver: properties-file
        file: /etc/totals/{host}.properties
        restart: ssh {host} sudo systemctl restart totals

The name is the application's ``application.id``. An instance has the name of its
``application.server``, if it is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from connectctl.ops.config.worker_section import WorkersSection, nested
from pydantic import AfterValidator, Field


def _instance(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError("it should be an instance's address, host:port")
    return text


class ApplicationSection(WorkersSection):
    """The section of one application: the keys of ``workers``, and ``instances``."""

    driver: Literal["command", "properties-file", "manual"] | None = None
    instances: list[Annotated[str, AfterValidator(_instance)]] = Field(default_factory=list)


def from_settings(application: str, section: Mapping[str, Any]) -> ApplicationSection | None:
    """Return the section of an application from the settings under ``applications``; None if there
    are none.
    """
    # An application's name may have dots, and may be a prefix of another's.
    prefix = f"{application}."
    values = {
        key.removeprefix(prefix): value for key, value in section.items() if key.startswith(prefix)
    }
    found = nested(
        {key: value for key, value in values.items() if "." not in key or key.startswith("each.")}
    )
    return ApplicationSection.model_validate(found) if found.keys() - {"each"} else None
