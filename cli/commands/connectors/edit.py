"""``connectctl connectors edit``: a configuration in the person's editor, validated and compared before it is sent."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

from connectctl.cli.commands.connectors import cluster as connectors_cluster
from connectctl.cli.commands.connectors.apply import change, planner_of
from connectctl.cli.commands.connectors.options import ConfigOptions
from connectctl.cli.session import Session
from connectctl.ops.clients.editor import edit as open_editor
from connectctl.ops.clients.secrets import reveal
from connectctl.ops.config.masking import MASK
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.operations.connectors.config_files import read, refuse_unusable, usable
from connectctl.ops.operations.connectors.config_plan import Desired
from connectctl.ops.operations.connectors.config_values import shown
from connectctl.ops.operations.connectors.observe import defined_passwords, the_one


def edit(session: Session, pattern: str, options: ConfigOptions) -> None:
    """Edit the one connector that ``pattern`` means. What was written stays in its file where it is not sent."""
    cluster = connectors_cluster.observed(session)
    found = the_one(cluster.connectors(), pattern)
    planner = planner_of(cluster, "connectors edit", [found], wait=options.wait)
    name, former = found.name, found.connector.config
    masked = shown(former, defined_passwords(cluster.calls, former))
    text = json.dumps(masked, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    directory = Path(tempfile.mkdtemp(prefix="connectctl-edit-"))  # for its owner only
    path = directory / "connector.json"
    path.write_text(text)
    try:
        open_editor(path, os.environ)
        wanted = [_edited(path, name, former, masked)]
        # While the person wrote, others may have come.
        change(session, cluster, planner, wanted, options, there=cluster.connectors())
    except ConnectctlError as e:
        if path.exists() and path.read_text() != text:
            e.next_step = f"{e.next_step or ''} Your edit is saved in {path}.".strip()
        else:
            rmtree(directory)
        raise
    rmtree(directory)


def _edited(path: Path, name: str, former: Mapping[str, str], masked: Mapping[str, str | None]) -> Desired:
    """What the person made of the configuration; a secret that is masked as it was stays what it is."""
    given, *more = read([path], reveal)
    if more:
        raise BadInput("The file has more than one configuration", next_step="Leave one.")
    config = {
        each: former[each] if value and MASK in value and masked.get(each) == value else value
        for each, value in given.config.items()
    }
    refuse_unusable(given := replace(given, config=config, name=config.get("name") or name))
    if given.name != name:
        raise BadInput(f"A connector cannot be renamed: {name} became {given.name}")
    return replace(usable(given), file=None)  # the file is gone when a saved plan is applied
