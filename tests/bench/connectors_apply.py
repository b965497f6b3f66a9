"""An unchanged directory of connectors, planned: seconds, megabytes and requests; see
docs/scale.md.

    python tests/bench/connectors_apply.py [--connectors 500] [--tasks 500] [--workers 3] [--runs 3] [--changed 0]

The directory is in JSON, YAML and Strimzi's manifests in turn, one file for each connector, as the
cluster has them; of ``--changed`` of them a property is another one than the cluster has. Whole
commands, start-up included, compiled as installed ones are, on a broker and faked workers of their
own (``companyworkers.py``).
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import httpx
from company import GROUP, Company  # type: ignore[import-not-found]  # beside this file

# beside this file
from scale import connectctl, measure, recorded, sandbox, workers  # type: ignore[import-not-found]

FORMS = ("json", "yaml", "manifest")


def write(directory: Path, company: Company, form: str, changed: int) -> None:
    """Write a file for each connector of ``company``; ``changed`` of them differ in one
    property.
    """
    import yaml

    directory.mkdir()
    for number, name in enumerate(company.names()):
        config = company.config(number) | ({"snapshot.mode": "never"} if number < changed else {})
        if form == "json":
            (directory / f"{name}.json").write_text(
                json.dumps({"name": name, "config": config}, indent=2)
            )
            continue
        data: dict[str, Any] = {"name": name, "config": config}
        if form == "manifest":
            rest = {
                k: v for k, v in config.items() if k not in ("name", "connector.class", "tasks.max")
            }
            spec = {
                "class": config["connector.class"],
                "tasksMax": int(config["tasks.max"]),
                "config": rest,
            }
            labels = {"strimzi.io/cluster": "company"}
            data = {"apiVersion": "kafka.strimzi.io/v1beta2", "kind": "KafkaConnector"}
            data |= {"metadata": {"name": name, "labels": labels}, "spec": spec}
        (directory / f"{name}.yaml").write_text(yaml.safe_dump(data))


def main() -> None:
    """Measure each form of files, without and with ``--prune``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connectors", type=int, default=500)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--changed", type=int, default=0)
    parser.add_argument(
        "--delay", type=float, default=0.0, help="seconds that a worker takes for a validation"
    )
    parser.add_argument("--forms", default=",".join(FORMS))
    wish = parser.parse_args()
    company = Company(wish.connectors, wish.tasks)
    with sandbox(workers=1) as up:
        answers = recorded(up.rest_urls[0])
        up.group.stop_worker(1)
        with workers(up.bootstrap_servers, answers, wish.connectors, wish) as urls:
            for form in wish.forms.split(","):
                directory = Path(os.environ["XDG_STATE_HOME"]) / form
                write(directory, company, form, wish.changed)
                for more in ([], ["--prune"]):
                    row = connectctl(
                        "--bootstrap-servers", up.bootstrap_servers, "--group-id", GROUP
                    )
                    row += [
                        "connectors",
                        "apply",
                        "-f",
                        str(directory),
                        "--dry-run",
                        "--exit-code",
                        *more,
                    ]
                    httpx.get(f"{urls[0]}/-/counts")
                    found = measure(row, wish.runs, expect=(3 if wish.changed else 0,))
                    counts = httpx.get(f"{urls[0]}/-/counts").json()
                    name = " ".join(
                        (f"apply, {wish.connectors:,} of {form}, {wish.changed} changed", *more)
                    )
                    requests = sum(sum(by.values()) for by in counts.values()) / wish.runs
                    print(found.line(name) + f"  {requests:g} requests", flush=True)


if __name__ == "__main__":
    main()
