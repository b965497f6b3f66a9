"""A ``kubectl`` that keeps one KafkaConnect resource in a file, with an operator that carries out
what is asked.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# A program of its own, because the driver runs a program. Each "get" is a moment in which the
# operator does its work: ``lag`` of them pass before a new generation is carried out.
PROGRAM = """\
#!{python}
import json, pathlib, sys

STATE = pathlib.Path({state!r})
state = json.loads(STATE.read_text())
resource, words = state["resource"], sys.argv[1:]
state["calls"].append(words)
namespace = words[words.index("--namespace") + 1] if "--namespace" in words else "default"

def fail(message, status=1):
    STATE.write_text(json.dumps(state))
    sys.stderr.write(message + "\\n")
    sys.exit(status)

if state["unanswered"] > 0:
    state["unanswered"] -= 1
    fail("Unable to connect to the server: dial tcp 10.0.0.1:6443: connect: connection refused")
if words[:3] == ["auth", "can-i", "patch"]:
    allowed = state["may_patch"]
    print("yes" if allowed else "no")
    STATE.write_text(json.dumps(state))
    sys.exit(0 if allowed else 1)
kind, _, name = words[1].partition("/")
metadata = resource["metadata"]
if kind == "strimzipodsets.core.strimzi.io" and name == metadata["name"] + "-connect":
    if words[0] == "annotate":
        assert words[2:4] == ["strimzi.io/manual-rolling-update=true", "--overwrite"], words
        state["asked"] = state["lag"]
    else:
        assert words[2:5] == ["--ignore-not-found", "-o", "json"], words
        if state["asked"] and not state["stuck"]:
            state["asked"] -= 1
            if not state["asked"]:
                state["rolled"].append(dict(resource["spec"].get("config") or {{}}))
        annotations = {{"strimzi.io/manual-rolling-update": "true"}} if state["asked"] else {{}}
        print(json.dumps({{"metadata": {{"annotations": annotations}}}}))
    STATE.write_text(json.dumps(state))
    sys.exit(0)
if kind != "kafkaconnects.kafka.strimzi.io" or (name, namespace) != (metadata["name"], metadata["namespace"]):
    fail('Error from server (NotFound): ' + kind + ' "' + name + '" not found')
if words[0] == "get":
    assert words[2:4] == ["-o", "json"], words
    status = resource.setdefault("status", {{}})
    if status.get("observedGeneration") != metadata["generation"] and not state["stuck"]:
        state["behind"] -= 1
        if state["behind"] <= 0:
            status["observedGeneration"] = metadata["generation"]
            status["conditions"] = [{{"type": "Ready", "status": "True"}}]
            state["rolled"].append(dict(resource["spec"].get("config") or {{}}))
    print(json.dumps(resource))
elif words[0] == "patch":
    assert words[2:5] == ["--type", "merge", "-p"], words
    before = json.dumps(resource["spec"], sort_keys=True)
    config = resource["spec"].setdefault("config", {{}})
    config.update(json.loads(words[5])["spec"]["config"])
    if json.dumps(resource["spec"], sort_keys=True) != before:
        metadata["generation"] += 1
        state["behind"] = state["lag"]
    print("kafkaconnect.kafka.strimzi.io/" + name + " patched")
else:
    fail("unknown command " + words[0])
STATE.write_text(json.dumps(state))
"""


@dataclass(frozen=True)
class FakeKubectl:
    """The program at ``path``; what it keeps is in ``state``."""

    path: Path
    state: Path

    @classmethod
    def made(
        cls, directory: Path, *, name: str = "connect", namespace: str = "default", **told: Any
    ) -> FakeKubectl:
        """A new one in ``directory``; ``told`` overrides what it keeps besides the resource."""
        made = cls(directory / "kubectl", directory / "kubectl.json")
        made.path.write_text(PROGRAM.format(python=sys.executable, state=str(made.state)))
        made.path.chmod(0o755)
        resource = {
            "metadata": {"name": name, "namespace": namespace, "generation": 1},
            "spec": {
                "replicas": 2,
                "config": {"group.id": "connect", "offset.flush.interval.ms": 1000},
            },
            "status": {
                "observedGeneration": 1,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        kept = {"resource": resource, "lag": 2, "behind": 0, "asked": 0, "calls": [], "rolled": []}
        made.write(kept | {"may_patch": True, "stuck": False, "unanswered": 0} | told)
        return made

    def read(self) -> dict[str, Any]:
        return dict(json.loads(self.state.read_text()))

    def write(self, state: dict[str, Any]) -> None:
        self.state.write_text(json.dumps(state))

    def edit(self, **told: Any) -> None:
        """Change what it keeps; ``config`` is put into the resource as its owner would."""
        state = self.read()
        if config := told.pop("config", None):
            state["resource"]["spec"]["config"] |= config
            state["resource"]["metadata"]["generation"] += 1
            state["behind"] = state["lag"]
        self.write(state | told)

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.read()["resource"]["spec"]["config"])

    @property
    def patches(self) -> int:
        return sum(words[0] == "patch" for words in self.read()["calls"])
