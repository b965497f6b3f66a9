"""The tools on the page about templates: what they render is taken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from documentation import ROOT, blocks

PAGE = ROOT / "docs/how-to/templates.md"
STANDINS = {
    "envsubst": "import os; print(os.path.expandvars(sys.stdin.read()))",
    "helm": """
text = pathlib.Path(sys.argv[2], "templates/connectors.yaml").read_text()
name, _, value = sys.argv[4].partition("=")
print("---\\n# Source\\n" + text.replace("{{ .Values." + name + " }}", value))
""",
    "kubectl": """
print(pathlib.Path(sys.argv[2], "lines.yaml").read_text().replace("name: ", "name: stage-"))
""",
    "oc": """
name, _, value = sys.argv[5].partition("=")
text = pathlib.Path(sys.argv[3]).read_text().replace("${" + name + "}", value)
objects = yaml.safe_load(text)["objects"]
print(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
""",
}
"""What the page needs of tools that a machine does not have."""


def test_what_tools_render_has_no_error(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, program in STANDINS.items():
        if shutil.which(name) is None:
            (tools / name).write_text(
                f"#!{sys.executable}\nimport json, pathlib, sys, yaml\n{program}"
            )
            (tools / name).chmod(0o755)
    work = tmp_path / "work"
    for block in blocks(PAGE):
        if block.file:
            (work / block.file).parent.mkdir(parents=True, exist_ok=True)
            (work / block.file).write_text(block.text)
    (script,) = blocks(PAGE, "bash")
    path = [str(Path(sys.executable).parent), str(tools), os.environ["PATH"]]
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script.text],
        cwd=work,
        env={**os.environ, "PATH": os.pathsep.join(path), "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split(maxsplit=3) for line in done.stdout.splitlines() if line.startswith("-  ")]
    assert [row[1:] for row in rows] == [
        ["lines-stage", "source", "no error found"],
        ["lines-stage", "source", "no error found"],
        ["stage-lines", "source", "no error found"],
        ["lines-stage", "source", "no error found"],
    ]
