"""What decides on a connector's state on real clusters: REST of another group, rebalances, groups
that do not exist.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psutil
import pytest
from fakes.restserver import Answer, Asked, rest_server
from fakes.sandboxes import extra_group
from live.offsetchanges import file_source, live, stopped
from live.real import Ran, connectctl, connector, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
UNPROVEN = "is not proven to be a worker of the group"


@pytest.fixture(scope="module")
def other(cluster: Sandbox) -> str:
    """A worker of another group on the same Kafka cluster."""
    return extra_group(cluster, "judged", support="enabled").rest_urls[0]


def ctl(cluster: Sandbox, *args: str, stdin: str | None = None) -> Ran:
    return connectctl("--context", f"sandbox-{cluster.spec.name}", *args, stdin=stdin)


@contextmanager
def source(cluster: Sandbox, directory: Path, name: str) -> Iterator[str]:
    """A source that runs, with 300 records that it has read and offsets that it has committed."""
    path = directory / f"{name}.txt"
    path.write_text("".join(f"line {n}\n" for n in range(300)))
    with connector(cluster, name, file_source(path, f"{name}-topic")):
        eventually(lambda: live(cluster, f"{cluster.group_id}-offsets", name))
        yield json.dumps(
            {"offsets": [{"partition": {"filename": str(path)}, "offset": {"position": 0}}]}
        )


@contextmanager
def rebalancing(cluster: Sandbox) -> Iterator[None]:
    """A connector is created and deleted again and again, each time with a rebalance."""
    over = threading.Event()

    def churn() -> None:
        rest, config = workers(cluster), file_source(Path("/nowhere"), "churn")
        while not over.is_set():
            rest.call("POST", "/connectors", {"name": "churn", "config": config})
            time.sleep(0.5)
            rest.call("DELETE", "/connectors/churn")
            time.sleep(0.5)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_offsets_are_not_written_under_a_connector_that_only_another_groups_worker_denies(
    cluster: Sandbox, other: str, tmp_path: Path
) -> None:
    topic = f"{cluster.group_id}-offsets"
    with source(cluster, tmp_path, "judged-offsets") as offsets:
        before = live(cluster, topic, "judged-offsets")
        name = "judged-offsets"
        for args in (
            ("offsets", "set", name, "-f", "-"),
            ("offsets", "reset", name),
            ("offsets", "merge", name, "--into", "dedicated", "--topic", "judged-own"),
            ("connectors", "stop", name),
            ("connectors", "delete", name),
            ("loggers", "set", "root", "DEBUG"),
            ("fence", name),
        ):
            ran = ctl(cluster, "--rest", other, *args, "--yes", stdin=offsets)
            assert (ran.code, other in ran.err, cluster.rest_urls[0] in ran.err) == (
                4,
                True,
                True,
            ), (args, ran)
        ran = ctl(cluster, "--rest", other, "offsets", "copy", name, name, "--yes")
        assert ran.code in (2, 4), ran
        assert live(cluster, topic, name) == before
        assert workers(cluster).state(name) == ["RUNNING", "RUNNING"]


def test_what_another_groups_worker_does_not_list_is_shown_from_the_topics(
    cluster: Sandbox, other: str, tmp_path: Path
) -> None:
    with source(cluster, tmp_path, "judged-shown"):
        for args in (
            ("connectors", "list"),
            ("connectors", "show", "judged-shown"),
            ("tasks", "check"),
        ):
            ran = ctl(cluster, "--rest", other, *args)
            assert (ran.code, "judged-shown" in ran.out, UNPROVEN in ran.err) == (0, True, True), (
                args,
                ran,
            )
        shown = ctl(cluster, "--rest", other, "cluster", "show", "--exit-code")
        assert (shown.code, "judged-shown" in shown.out) == (1, True), shown
        assert "CLUSTER010" in shown.err
        checked = ctl(cluster, "--rest", other, "preflight", "judged-shown", "-o", "json")
        told = {finding["id"]: finding for finding in checked.json["findings"]}
        assert other in told["CLUSTER010"]["message"], told
        assert not [f for f in told.values() if "topic.tracking" in str(f["nextStep"])]


def test_an_address_that_nobody_advertises_is_the_groups_where_it_lists_the_groups_connectors(
    cluster: Sandbox, tmp_path: Path
) -> None:
    localhost = cluster.rest_urls[0].replace("127.0.0.1", "localhost")
    with source(cluster, tmp_path, "judged-mapped"), rest_server() as mapped:
        for path in (
            "/",
            "/connectors?expand=info",
            "/connectors?expand=status&expand=info",
            "/connectors",
        ):
            mapped.on(f"GET {path}", partial(_forwarded, cluster.rest_urls[0] + path))
        for url in (localhost, mapped.url):
            listed = ctl(cluster, "--rest", url, "connectors", "list", "-o", "json")
            assert (listed.code, listed.json["connectorsFrom"]) == (0, "workers"), listed
        mapped.on("GET /connectors?expand=info", (200, {}))
        denied = ctl(
            cluster, "--rest", mapped.url, "connectors", "stop", "judged-mapped", "--dry-run"
        )
        assert (denied.code, UNPROVEN in denied.err) == (4, True), denied
        declared = ctl(
            cluster,
            "--rest",
            mapped.url,
            "--rest-is-group",
            "connectors",
            "stop",
            "judged-mapped",
            "--dry-run",
        )
        assert declared.code == 0, declared


def _forwarded(url: str, asked: Asked) -> Answer:
    """The answer of the worker behind a port mapping."""
    return 200, httpx.get(url, timeout=60).json()


def test_a_group_that_does_not_exist_has_no_connectors(
    cluster: Sandbox, other: str, tmp_path: Path
) -> None:
    with source(cluster, tmp_path, "judged-nobody"):
        for args in (
            ("connectors", "list"),
            ("connectors", "show", "judged-nobody"),
            ("cluster", "show"),
        ):
            ran = connectctl(
                "--bootstrap-servers",
                cluster.bootstrap_servers,
                "--group-id",
                "nobodys",
                "--rest",
                other,
                *args,
            )
            assert (ran.code, ran.out) == (2, ""), (args, ran)
            assert "Kafka has no group nobodys" in ran.err
            assert cluster.group_id in ran.err


def test_a_rebalance_hides_no_running_task_and_invents_no_silent_worker(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name = "judged-rebalance"
    with source(cluster, tmp_path, name), rebalancing(cluster):
        for _ in range(6):
            fenced = ctl(cluster, "fence", name, "--yes")
            assert fenced.code == 4, fenced
            shown = ctl(cluster, "cluster", "show", "-o", "json")
            ids = {finding["id"] for finding in shown.json["findings"]}
            assert not ids & {"CLUSTER004", "CLUSTER008", "CLUSTER010"}, shown
        assert workers(cluster).state(name) == ["RUNNING", "RUNNING"]


def test_a_task_of_a_worker_that_is_suspended_is_not_taken_for_one_that_has_ended(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name = "judged-suspended"
    with source(cluster, tmp_path, name) as offsets:
        status = workers(cluster).call("GET", f"/connectors/{name}/status").json()
        owner = status["tasks"][0]["worker_id"]
        asleep = next(url for url in cluster.rest_urls if url.endswith(owner))
        awake = next(url for url in cluster.rest_urls if url != asleep)
        process = _listening(int(asleep.rpartition(":")[2]))
        before = live(cluster, f"{cluster.group_id}-offsets", name)
        process.send_signal(signal.SIGSTOP)
        try:
            ran = ctl(
                cluster,
                "--rest",
                awake,
                "--timeout",
                "5",
                "offsets",
                "set",
                name,
                "-f",
                "-",
                "--yes",
                stdin=offsets,
            )
            assert ran.code in (4, 6), ran
            assert live(cluster, f"{cluster.group_id}-offsets", name) == before
        finally:
            process.send_signal(signal.SIGCONT)
        eventually(lambda: workers(cluster).state(name) == ["RUNNING", "RUNNING"])


def _listening(port: int) -> psutil.Process:
    """The process that listens on ``port``."""
    found = (
        each for each in psutil.net_connections("tcp") if each.laddr and each.laddr.port == port
    )
    return psutil.Process(
        next(each.pid for each in found if each.status == psutil.CONN_LISTEN and each.pid)
    )


@pytest.mark.parametrize(
    ("fault", "answer", "code"),
    [
        ("does not let us in", (401, {"error_code": 401, "message": "Unauthorized"}), 5),
        ("is no worker", (200, "<html>"), 5),
        ("fails", (500, {"error_code": 500, "message": "boom"}), 1),
    ],
)
def test_a_fault_of_a_worker_has_one_exit_code_and_one_text(
    cluster: Sandbox, stopped_source: str, fault: str, answer: Answer, code: int
) -> None:
    """``fault`` is what the server does; commands that the topics can answer are not ended by
    it.
    """
    changing = (
        ("connectors", "stop", stopped_source, "--yes"),
        ("connectors", "patch", stopped_source, "x=1", "--yes"),
        ("connectors", "delete", stopped_source, "--yes"),
    )
    path = "/connectors?expand=status&expand=info"
    with rest_server(
        {"GET /": answer, f"GET {path}": answer, "GET /connectors?expand=info": answer}
    ) as server:
        texts = set()
        for args in changing:
            ran = ctl(cluster, "--rest", server.url, "--timeout", "5", *args)
            assert ran.code == code, (fault, args, ran)
            texts.add(ran.err)
        assert len(texts) == 1
        for shown in ("connectors list", "cluster show"):
            ran = ctl(cluster, "--rest", server.url, "--timeout", "5", *shown.split())
            assert ran.code == (5 if answer[0] == 401 else 0), (fault, shown, ran)
            assert server.url in ran.err


@pytest.fixture(scope="module")
def stopped_source(cluster: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with source(cluster, tmp_path_factory.mktemp("judged"), "judged-faults"):
        stopped(cluster, "judged-faults")
        yield "judged-faults"
