"""``doctor --heal`` over a night of faults, compressed in time: twelve that pass are cured within a
minute each, three that last are left alone and said, no cure is done twice in vain, a connector's
budget is obeyed, and it stops where its cures do not help.

``pytest -m campaign -s tests/live/test_doctor_night.py`` takes some minutes;
``test_doctor_heal.py`` has a part of it in each run.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from connectctl.ops.checks.heal.planning import BUDGET, MOST_IN_VAIN
from draws import drawn_by
from fakes.sandboxes import kill_broker, start_broker
from live.faults import Faults
from live.offsetchanges import VERIFIABLE
from live.rawproducer import RawProducers
from live.real import eventually, slowdown
from live.standins import cluster_with_faults

pytestmark = [pytest.mark.live, pytest.mark.campaign]

MINUTE = 60.0
ERRORS = "org.apache.kafka.common.errors"
PASSING = (
    f"{ERRORS}.TimeoutException Topic was not available within 60000 ms",
    f"{ERRORS}.NotCoordinatorException This is not the correct coordinator.",
    f"{ERRORS}.CoordinatorLoadInProgressException The coordinator is loading.",
    f"{ERRORS}.ProducerFencedException There is a newer producer with the same transactionalId",
    f"{ERRORS}.DisconnectException Cancelled request due to node 1 being disconnected",
    "java.net.SocketTimeoutException Read timed out",
    "java.net.ConnectException Connection refused",
    "java.sql.SQLTransientConnectionException the pool is empty",
)
MANY = 14
"""Tasks whose ids take a leader so long to fence that doctor reports it."""
LASTING = (
    "lasting row 17 of orders",
    f"stubborn {ERRORS}.TimeoutException Topic orders not present in metadata after 60000 ms",
    f"stubborn {ERRORS}.TopicAuthorizationException Not authorized to access topics: [orders]",
)


@dataclass
class Night:
    """What was planted, and what the cures did. ``seconds`` are those from the moment in which a
    fault is there to its end, by its words, of a machine without other load.
    """

    faults: Faults
    raw: RawProducers
    cured: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)

    def passes(self, words: str, is_over: Callable[[], bool]) -> None:
        """Cure the fault that is there now, and note how long that takes."""
        began = time.monotonic()
        healed = self.heal()
        assert is_over(), f"{words}: not cured by the run that saw it: {healed}"
        took = time.monotonic() - began
        print(f"{took:5.1f} s  {words}", flush=True)
        self.seconds[words] = took / slowdown()

    def heal(self) -> Any:
        """Run ``doctor --heal``, and count what it has done."""
        ran = self.faults.run("doctor", "--heal", "--yes", "--timeout", "30", "-o", "json")
        assert ran.code in (0, 1, 7), ran.err
        done = [each for each in ran.json["results"] if each["outcome"] in ("done", "failed")]
        self.cured.update(str(each["description"]) for each in done)
        return ran.json

    def left_alone(self) -> dict[str, str]:
        """Why each part is left alone."""
        plan = self.faults.run("doctor", "--heal", "--dry-run", "-o", "json").json
        return {noop["subject"]: noop["why"] for noop in plan["unchanged"]}

    def fails(self, *parts: str) -> None:
        eventually(lambda: set(parts) <= self.faults.failed())

    # ------------------------------------------------------------------------- faults that pass

    def a_task(self, name: str, task: int, how: str) -> None:
        self.faults.plant(name, task, f"passing {how}")
        self.fails(f"{name}/{task}")
        self.passes(how, lambda: f"{name}/{task}" not in self.faults.failed())

    def a_fenced_task(self) -> None:
        ran = self.faults.run("fence", "fenced", "--force", "--yes")
        assert ran.code == 0, ran.err
        self.fails("fenced/0")
        self.passes("fenced", lambda: "fenced/0" not in self.faults.failed())

    def a_broker_that_restarts(self) -> None:
        kill_broker(self.faults.cluster)
        time.sleep(8)  # longer than the producer's delivery.timeout.ms
        start_broker(self.faults.cluster)
        self.fails("delivering/0")
        self.passes("broker", lambda: "delivering/0" not in self.faults.failed())

    def a_transaction_that_hangs(self) -> None:
        topic, id_ = self.faults.cluster.topics["offsets"], "night-ghost"
        self.raw.init([id_])
        self.raw.begin([id_], topic, [0])
        self.raw.write_behind(id_, topic, key=b"ghost")
        self.raw.commit([id_])
        eventually(lambda: not self.raw.calls.describe([id_])[id_].is_open)  # type: ignore[union-attr]
        self.raw.write_behind(id_, topic, sequence=1, key=b"ghost")
        self.passes("hanging", lambda: not self._hanging(topic))

    def _hanging(self, topic: str) -> Any:
        ran = self.faults.run("transactions", "hanging", "--topic", topic, "-o", "json")
        return ran.json["hanging"]

    def a_round_of_fencing_that_is_slow(self) -> None:
        rest = self.faults.rest
        config = rest.call("GET", "/connectors/many/config").json()
        rest.call("PUT", "/connectors/many/config", config | {"tasks.max": str(MANY - 2)})
        eventually(lambda: "many" in {s["subject"] for s in self._planned()})
        self.passes("slow fencing", lambda: rest.state("many") == ["RUNNING"] * (MANY - 1))

    def _planned(self) -> list[dict[str, Any]]:
        return list(self.faults.run("doctor", "--heal", "--dry-run", "-o", "json").json["steps"])


def _has(faults: Faults, name: str, states: list[str]) -> bool:
    return faults.rest.state(name) == states


@pytest.fixture(scope="module")
def night(state_home: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    directory = tmp_path_factory.mktemp("night")
    unverified = {"transaction.partition.verification.enable": "false"}
    with cluster_with_faults(directory, "night", extra_broker_properties=unverified) as cluster:
        faults = Faults(cluster, directory)
        for name in ("jobs-a", "jobs-b", "jobs-c", "greedy", "lasting"):
            faults.create(name, 3 if name != "greedy" else BUDGET + 2)
        for n in range(MOST_IN_VAIN + 1):
            faults.create(f"stubborn-{n}", 1)
        soon = {"delivery.timeout.ms": "3000", "request.timeout.ms": "1500", "linger.ms": "0"}
        overrides = {f"producer.override.{name}": value for name, value in soon.items()}
        running = {
            "fenced": VERIFIABLE | {"topic": "fenced", "throughput": "50"},
            "delivering": VERIFIABLE | {"topic": "delivering", "throughput": "50"} | overrides,
            "many": VERIFIABLE | {"topic": "many", "tasks.max": str(MANY)},
        }
        for name, config in running.items():
            faults.rest.create(name, config)
        for name, config in running.items():
            states = ["RUNNING"] * (int(config.get("tasks.max", "1")) + 1)
            eventually(partial(_has, faults, name, states))
        raw = RawProducers(cluster.bootstrap_servers)
        yield Night(faults, raw)
        raw.close()


def test_twelve_faults_that_pass_are_cured_and_three_that_last_are_left_alone(night: Night) -> None:
    draw = random.Random(drawn_by())
    parts = [(f"jobs-{job}", task) for job in "abc" for task in range(3)]
    deeds: list[Callable[[], None]] = [
        lambda name=name, task=task, how=how: night.a_task(name, task, how)  # type: ignore[misc]
        for (name, task), how in zip(parts, PASSING, strict=False)
    ]
    deeds += [night.a_fenced_task, night.a_broker_that_restarts]
    deeds += [night.a_transaction_that_hangs, night.a_round_of_fencing_that_is_slow]
    assert len(deeds) == 12
    draw.shuffle(deeds)
    lasting = dict(zip(draw.sample(range(len(deeds)), 3), enumerate(LASTING), strict=True))
    for n, deed in enumerate(deeds):
        if n in lasting:
            task, how = lasting[n]
            night.faults.plant("lasting", task, how)
            night.fails(f"lasting/{task}")
        deed()
    assert len(night.seconds) == 12
    assert max(night.seconds.values()) <= MINUTE
    assert night.faults.failed() == {f"lasting/{task}" for task in range(3)}
    left = night.left_alone()
    assert all("not transient" in left[f"lasting/{task}"] for task in range(3))
    before = night.cured.copy()
    night.heal()
    assert night.cured == before, "nothing is to be cured any more"


def test_of_a_connector_only_so_many_parts_are_cured_in_an_hour(night: Night) -> None:
    parts = {f"greedy/{task}" for task in range(BUDGET + 2)}
    for task in range(BUDGET + 2):
        night.faults.plant("greedy", task, "passing")
    night.fails(*parts)
    night.heal()
    still = night.faults.failed() & parts
    assert len(still) == 2
    left = night.left_alone()
    assert all("budget is spent" in left[part] for part in still)
    night.heal()
    assert night.faults.failed() & parts == still


def test_after_cures_in_vain_there_are_no_more_not_even_of_what_would_help(night: Night) -> None:
    stubborn = [f"stubborn-{n}" for n in range(MOST_IN_VAIN)]
    for name in stubborn:
        night.faults.plant(name, 0, "stubborn")
    night.fails(*(f"{name}/0" for name in stubborn))
    night.heal()
    before = night.cured.copy()
    night.faults.plant(f"stubborn-{MOST_IN_VAIN}", 0, "passing")
    night.fails(f"stubborn-{MOST_IN_VAIN}/0")
    night.heal()
    assert night.cured == before
    left = night.left_alone()
    assert "find the cause" in left[f"stubborn-{MOST_IN_VAIN}/0"]
    assert all("did not help" in left[f"{name}/0"] for name in stubborn)
