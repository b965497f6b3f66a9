"""``offsets show`` on a real broker, beside what real workers say."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from connectctl.ops.kafka.partitioner import java_partition
from live.real import (
    FILE_SOURCE,
    Ran,
    Workers,
    connectctl,
    connector,
    create_topic,
    eventually,
    forget_deleted_connectors,
    workers,
    write,
    write_uncommitted,
)

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/source-offsets.json").read_text())


def show(cluster: Sandbox, *args: str, code: int = 0) -> Any:
    """The JSON of ``offsets show``, which keeps to its schema."""
    ran = connectctl(
        "--context", f"sandbox-{cluster.spec.name}", "offsets", "show", *args, "-o", "json"
    )
    assert ran.code == code, ran.err
    jsonschema.validate(ran.json, SCHEMA)
    return ran.json


def offsets(found: Any, name: str) -> dict[str, Any]:
    """The entries of one connector by raw key."""
    (entry,) = [c for c in found["connectors"] if c["name"] == name]
    return {offset["key"]: offset for offset in entry["offsets"]}


def ids(found: Any) -> set[str]:
    return {finding["id"] for finding in found["findings"]}


def spelled(name: str, partition: Any) -> str:
    return json.dumps([name, partition], separators=(",", ":"))


def agrees_with_the_workers(cluster: Sandbox, name: str, **kwargs: Any) -> bool:
    """Whether ``workerReads`` is what a worker's GET …/offsets says, partition by partition."""
    ours = {
        json.dumps(e["partition"], sort_keys=True): e["workerReads"]
        for e in offsets(show(cluster, name, **kwargs), name).values()
    }
    theirs = {
        json.dumps(o["partition"], sort_keys=True): o["offset"]
        for o in workers(cluster).offsets(name)
    }
    return bool(ours) and ours == theirs


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("one\ntwo\nthree\n")
    return path


# ------------------------------------------------------------------------ connectors without oddity


def test_a_file_source_stands_where_its_worker_says(cluster: Sandbox, file: Path) -> None:
    with connector(
        cluster,
        "plain-file",
        {"connector.class": FILE_SOURCE, "file": str(file), "topic": "plain-file"},
    ) as rest:
        eventually(lambda: rest.offsets("plain-file"))
        eventually(lambda: agrees_with_the_workers(cluster, "plain-file"))
        (entry,) = offsets(show(cluster, "plain-file"), "plain-file").values()
        assert entry["effective"] == {"position": 14}
        assert entry["origin"] == "global"
        assert show(cluster, "plain-file")["findings"] == []


def test_a_stopped_connector_of_many_partitions_stands_where_its_worker_says(
    cluster: Sandbox,
) -> None:
    config = {
        "connector.class": "org.apache.kafka.connect.integration.TestableSourceConnector",
        "tasks.max": "3",
        "topic": "testable",
        "custom.exactly.once.support": "supported",
        "messages.per.poll": "5",
        "throughput": "200",
    }
    with connector(cluster, "testable", config) as rest:
        eventually(lambda: len(rest.offsets("testable")) == 3)
        rest.call("PUT", "/connectors/testable/stop")
        eventually(lambda: rest.state("testable") == ["STOPPED"])
        assert agrees_with_the_workers(cluster, "testable")


def is_stopped(rest: Workers, name: str) -> bool:
    return rest.state(name) == ["STOPPED"]


def test_mirror_maker_and_verifiable_sources_stand_where_their_workers_say(
    cluster: Sandbox,
) -> None:
    create_topic(cluster.bootstrap_servers, "mirrored", 3, "delete")
    write(cluster.bootstrap_servers, "mirrored", *[(str(n), "x") for n in range(50)])
    mirror = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": cluster.bootstrap_servers,
        "target.cluster.bootstrap.servers": cluster.bootstrap_servers,
        "topics": "mirrored",
        "tasks.max": "2",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
    }
    verifiable = {
        "connector.class": "org.apache.kafka.connect.tools.VerifiableSourceConnector",
        "topic": "verifiable",
        "tasks.max": "2",
        "throughput": "50",
    }
    with connector(cluster, "mirror", mirror) as rest, connector(cluster, "verifiable", verifiable):
        eventually(lambda: len(rest.offsets("mirror")) == 3)
        eventually(lambda: len(rest.offsets("verifiable")) == 2)
        for name in ("mirror", "verifiable"):
            rest.call("PUT", f"/connectors/{name}/stop")
            eventually(partial(is_stopped, rest, name))
            assert agrees_with_the_workers(cluster, name)


# -------------------------------------------------------------------------------- KIP-618's example

STOPPED = {"connector.class": FILE_SOURCE, "file": "/nowhere", "topic": "nowhere"}


@pytest.fixture(scope="module")
def reddit(cluster: Sandbox) -> Iterator[str]:
    """The worked example of KIP-618, in two real topics, with a tombstone besides."""
    name, own = "reddit-source", create_topic(cluster.bootstrap_servers, "reddit-offsets", 25)
    with connector(cluster, name, STOPPED | {"offsets.storage.topic": own}, "STOPPED"):
        write(
            cluster.bootstrap_servers,
            cluster.topics["offsets"],
            ([name, {"subreddit": "apachekafka"}], {"timestamp": "4761"}),
            ([name, {"subreddit": "CatsStandingUp"}], {"timestamp": "2112"}),
            ([name, {"subreddit": "deleted"}], {"timestamp": "7"}),
        )
        write(
            cluster.bootstrap_servers,
            own,
            ([name, {"subreddit": "CatsStandingUp"}], {"timestamp": "2169"}),
            ([name, {"subreddit": "grilledcheese"}], {"timestamp": "489"}),
            ([name, {"subreddit": "deleted"}], {"timestamp": "8"}),
            ([name, {"subreddit": "deleted"}], None),
        )
        yield name


def test_kip_618s_example_comes_out_as_the_kip_says(cluster: Sandbox, reddit: str) -> None:
    found = offsets(show(cluster, reddit), reddit)
    effective = {e["partition"]["subreddit"]: (e["effective"], e["origin"]) for e in found.values()}
    assert effective == {
        "apachekafka": ({"timestamp": "4761"}, "global"),
        "CatsStandingUp": ({"timestamp": "2169"}, "dedicated"),
        "grilledcheese": ({"timestamp": "489"}, "dedicated"),
        "deleted": ({"timestamp": "7"}, "global"),
    }


def test_a_real_worker_does_not_fall_back_and_we_say_so_loudly(
    cluster: Sandbox, reddit: str
) -> None:
    assert agrees_with_the_workers(cluster, reddit)
    found = show(cluster, reddit)
    reads = {e["partition"]["subreddit"]: e["workerReads"] for e in offsets(found, reddit).values()}
    assert reads["apachekafka"] is None
    assert "OFFSETS001" in ids(found)


def test_a_tombstone_in_the_dedicated_topic_is_an_absent_offset_to_a_real_worker(
    cluster: Sandbox, reddit: str
) -> None:
    entry = offsets(show(cluster, reddit), reddit)[spelled(reddit, {"subreddit": "deleted"})]
    assert entry["dedicated"]["offset"] is None
    assert entry["workerReads"] is None
    (theirs,) = [
        o for o in workers(cluster).offsets(reddit) if o["partition"] == {"subreddit": "deleted"}
    ]
    assert theirs["offset"] is None


def test_each_side_can_be_shown_alone(cluster: Sandbox, reddit: str) -> None:
    only = offsets(show(cluster, reddit, "--global-only"), reddit)
    assert all(e["dedicated"] is None for e in only.values())
    assert len(only) == 3
    only = offsets(show(cluster, reddit, "--dedicated-only"), reddit)
    assert all(e["global"] is None for e in only.values())
    assert len(only) == 3


def test_all_generations_shows_what_newer_records_superseded(cluster: Sandbox, reddit: str) -> None:
    found = offsets(show(cluster, reddit, "--all-generations"), reddit)
    earlier = found[spelled(reddit, {"subreddit": "deleted"})]["earlier"]
    assert [side["offset"] for side in earlier] == [{"timestamp": "8"}]


# ----------------------------------------------------------------------------------------- oddities


@pytest.fixture
def odd(cluster: Sandbox, request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A stopped connector with a dedicated topic of its own to spoil: its name and the topic's."""
    name = f"odd-{abs(hash(request.node.name)) % 10**8}"
    topic = create_topic(cluster.bootstrap_servers, f"{name}-offsets", 25)
    with connector(cluster, name, STOPPED | {"offsets.storage.topic": topic}, "STOPPED"):
        yield name, topic


VALUES = {
    "9007199254740993": ({"o": 9007199254740993}, "OFFSETS006"),
    "past 64 bits": ({"o": 9223372036854775813}, "OFFSETS006"),
    "far past 64 bits": ({"o": 12345678901234567890123}, "OFFSETS006"),
    "more text": ('{"o":1} and more', "OFFSETS005"),
    "no object": ("[1]", "OFFSETS005"),
    "JSON null": ("null", "OFFSETS005"),
}


@pytest.mark.parametrize("value", VALUES)
def test_a_worker_reads_an_odd_value_as_we_say(
    cluster: Sandbox, odd: tuple[str, str], value: str
) -> None:
    name, topic = odd
    written, finding = VALUES[value]
    write(cluster.bootstrap_servers, topic, ([name, {"p": 1}], written))
    found = show(cluster, name)
    (entry,) = offsets(found, name).values()
    assert ids(found) == {finding}
    theirs = [o["offset"] for o in workers(cluster).offsets(name)]
    assert entry["workerReads"] == (theirs[0] if theirs else None)


@pytest.mark.parametrize(
    "value", ["junk", b"\xff\xfe", "", {"o": {"deep": 1}}, {"o": [1]}, '{"o":1e400}']
)
def test_a_value_that_no_worker_can_read_is_shown_as_it_is(
    cluster: Sandbox, odd: tuple[str, str], value: Any
) -> None:
    name, topic = odd
    write(cluster.bootstrap_servers, topic, ([name, {"p": 1}], value))
    found = show(cluster, name)
    (entry,) = offsets(found, name).values()
    assert "unreadable" in entry["dedicated"]
    assert entry["workerReads"] is None
    assert ids(found) == {"OFFSETS005"}


def test_two_spellings_are_two_keys_to_a_worker_and_to_us(
    cluster: Sandbox, odd: tuple[str, str]
) -> None:
    name, topic = odd
    first, second = f'["{name}",{{"a":1,"b":2}}]', f'["{name}",{{"b":2,"a":1}}]'
    write(cluster.bootstrap_servers, topic, (first, {"o": 1}), (second, {"o": 2}))
    found = show(cluster, name)
    assert {key: e["effective"] for key, e in offsets(found, name).items()} == {
        first: {"o": 1},
        second: {"o": 2},
    }
    assert ids(found) == {"OFFSETS002", "OFFSETS019"}
    (theirs,) = workers(cluster).offsets(name)
    assert theirs["offset"] == {"o": 1}


def test_a_key_with_white_space_is_found_by_no_worker(
    cluster: Sandbox, odd: tuple[str, str]
) -> None:
    name, topic = odd
    write(cluster.bootstrap_servers, topic, (f'["{name}", {{"p": 1}}]', {"o": 1}))
    assert ids(show(cluster, name)) == {"OFFSETS014"}
    assert agrees_with_the_workers(cluster, name)


def test_a_record_where_javas_partitioner_would_not_put_it(
    cluster: Sandbox, odd: tuple[str, str]
) -> None:
    name, topic = odd
    key = spelled(name, {"p": 1})
    home = java_partition(key.encode(), 25)
    write(cluster.bootstrap_servers, topic, (key, {"o": 1}))
    write(cluster.bootstrap_servers, topic, (key, {"o": 2}), partition=(home + 1) % 25)
    found = show(cluster, name)
    entry = offsets(found, name)[key]
    assert entry["effective"] == {"o": 1}
    assert [stray["offset"] for stray in entry["strays"]] == [{"o": 2}]
    assert ids(found) == {"OFFSETS003"}


def test_keys_that_are_none_of_connects_are_told_and_not_dropped(
    cluster: Sandbox, odd: tuple[str, str]
) -> None:
    name, topic = odd
    keys = [
        "junk",
        b"\xff",
        "[]",
        f'["{name}"]',
        f'["{name}",1]',
        '[1,{"p":1}]',
        f'["{name}",{{}},1]',
    ]
    write(cluster.bootstrap_servers, topic, *[(key, {"o": 1}) for key in keys])
    found = show(cluster, name)
    assert [finding["id"] for finding in found["findings"]] == ["OFFSETS004"] * len(keys)
    assert offsets(found, name) == {}


def test_null_and_nested_partitions(cluster: Sandbox, odd: tuple[str, str]) -> None:
    name, topic = odd
    write(
        cluster.bootstrap_servers,
        topic,
        ([name, None], {"o": 1}),
        ([name, {"p": {"deep": 1}}], {"o": 2}),
    )
    found = show(cluster, name)
    assert ids(found) == {"OFFSETS007", "OFFSETS008"}
    assert offsets(found, name)[spelled(name, None)]["partition"] is None
    assert workers(cluster).offsets(name) == []


def test_members_in_another_order_than_a_hash_map_has_are_not_found_by_workers(
    cluster: Sandbox, odd: tuple[str, str]
) -> None:
    name, topic = odd
    partition = {"database": "d", "server": "s"}
    write(cluster.bootstrap_servers, topic, ([name, partition], {"commit_lsn": "a"}))
    assert workers(cluster).offsets(name) == [{"partition": partition, "offset": None}]
    assert ids(show(cluster, name)) == {"OFFSETS019"}


def test_an_empty_dedicated_topic_is_no_oddity(cluster: Sandbox, odd: tuple[str, str]) -> None:
    found = show(cluster, odd[0])
    assert found["findings"] == []
    assert [t["records"] for t in found["topics"] if t["role"] == "dedicated"] == [0]


def test_a_dedicated_topic_that_is_not_compacted_is_refused_by_workers(cluster: Sandbox) -> None:
    topic = create_topic(cluster.bootstrap_servers, "kept-for-days", policy="delete")
    with connector(
        cluster, "deleting", STOPPED | {"offsets.storage.topic": topic}, "STOPPED"
    ) as rest:
        found = show(cluster, "deleting")
        assert ids(found) == {"OFFSETS017"}, found
        assert rest.call("GET", "/connectors/deleting/offsets").status_code == 500


def test_a_dedicated_topic_that_is_never_cleaned_is_taken_by_workers_and_a_warning(
    cluster: Sandbox,
) -> None:
    topic = create_topic(cluster.bootstrap_servers, "endless-offsets", policy="")
    with connector(
        cluster, "endless", STOPPED | {"offsets.storage.topic": topic}, "STOPPED"
    ) as rest:
        (found,) = show(cluster, "endless")["findings"]
        assert (found["id"], found["severity"]) == ("OFFSETS017", "warning")
        assert rest.call("GET", "/connectors/endless/offsets").status_code == 200


def test_offsets_of_a_deleted_connector_are_still_shown(cluster: Sandbox) -> None:
    write(cluster.bootstrap_servers, cluster.topics["offsets"], (["long-gone", {"p": 1}], {"o": 1}))
    found = show(cluster, "long-gone")
    assert ids(found) == {"OFFSETS012"}
    assert found["connectors"][0]["configured"] is False


def test_a_hanging_transaction_is_told_and_not_waited_for(
    cluster: Sandbox, odd: tuple[str, str]
) -> None:
    name, topic = odd
    write(cluster.bootstrap_servers, topic, ([name, {"p": 1}], {"o": 1}))
    hanging = write_uncommitted(
        cluster.bootstrap_servers, topic, f"hang-{name}", ([name, {"p": 1}], {"o": 2})
    )
    try:
        found = show(cluster, name, "--patience", "1", code=1)
        assert ids(found) == {"OFFSETS009"}
        assert offsets(found, name)[spelled(name, {"p": 1})]["effective"] == {"o": 1}
    finally:
        hanging.abort_transaction(30)
    assert show(cluster, name)["findings"] == []


def test_a_transaction_that_ends_in_time_is_waited_for(
    cluster: Sandbox, odd: tuple[str, str]
) -> None:
    from threading import Timer

    name, topic = odd
    late = write_uncommitted(
        cluster.bootstrap_servers, topic, f"late-{name}", ([name, {"p": 1}], {"o": 2})
    )
    ending = Timer(1.0, late.commit_transaction)
    ending.start()
    try:
        assert offsets(show(cluster, name, "--patience", "20"), name)[spelled(name, {"p": 1})][
            "effective"
        ] == {"o": 2}
    finally:
        ending.join()


# ---------------------------------------------------------------------------------- another cluster


@pytest.fixture(scope="module")
def elsewhere(state_home: Path) -> Iterator[Sandbox]:
    """A second Kafka cluster, to which connectors of the first one write."""
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    yield up(SandboxSpec(name="elsewhere", workers=0))
    down("elsewhere")


def test_offsets_live_where_an_exactly_once_connector_writes(
    cluster: Sandbox, elsewhere: Sandbox, file: Path
) -> None:
    overrides = {
        f"{client}.override.bootstrap.servers": elsewhere.bootstrap_servers
        for client in ("producer", "consumer", "admin")
    }
    config = {"connector.class": FILE_SOURCE, "file": str(file), "topic": "far"} | overrides
    with connector(cluster, "far-file", config) as rest:
        eventually(lambda: rest.offsets("far-file"))
        found = show(cluster, "far-file")
        (entry,) = offsets(found, "far-file").values()
        assert entry["dedicated"]["offset"] == {"position": 14}
        assert found["connectors"][0]["dedicatedTopic"] == cluster.topics["offsets"]
        assert {t["bootstrapServers"] for t in found["topics"] if t["role"] == "dedicated"} == {
            elsewhere.bootstrap_servers
        }
        assert agrees_with_the_workers(cluster, "far-file")


def test_a_dedicated_topic_that_does_not_exist_yet(cluster: Sandbox, elsewhere: Sandbox) -> None:
    # With an override for the producer alone the worker creates the topic at home, and writes where
    # there is none.
    override = {"producer.override.bootstrap.servers": elsewhere.bootstrap_servers}
    config = STOPPED | {"offsets.storage.topic": "not-yet-offsets"} | override
    with connector(cluster, "not-yet", config, "STOPPED"):
        assert ids(show(cluster, "not-yet")) == {"OFFSETS010"}


def test_another_cluster_that_does_not_answer_costs_only_its_own_rows(
    cluster: Sandbox, reddit: str
) -> None:
    config = STOPPED | {
        "offsets.storage.topic": "far",
        "producer.override.bootstrap.servers": "127.0.0.1:1",
    }
    with connector(cluster, "unreachable", config, "STOPPED"):
        found = show(cluster, "--timeout", "3", code=1)
        assert "OFFSETS011" in ids(found)
        assert offsets(found, reddit)


def test_another_spelling_of_the_same_cluster_is_told(cluster: Sandbox) -> None:
    spelling = cluster.bootstrap_servers.replace("127.0.0.1", "localhost")
    topic = create_topic(cluster.bootstrap_servers, "same-offsets")
    config = STOPPED | {
        "offsets.storage.topic": topic,
        "producer.override.bootstrap.servers": spelling,
    }
    with connector(cluster, "same", config, "STOPPED"):
        assert ids(show(cluster, "same")) == {"OFFSETS015"}


# ---------------------------------------------------------------------------------------- bad input


def run(*args: str) -> Ran:
    return connectctl(*args, "offsets", "show")


def test_topics_are_found_from_brokers_and_group_alone(cluster: Sandbox, reddit: str) -> None:
    forget_deleted_connectors(cluster)
    ran = run("--bootstrap-servers", cluster.bootstrap_servers, "--group-id", cluster.group_id)
    assert ran.code == 0, ran.err
    assert reddit in ran.out


def test_an_unreachable_broker_is_exit_5_within_the_timeout() -> None:
    started = time.monotonic()
    ran = run("--bootstrap-servers", "127.0.0.1:1", "--group-id", "g", "--timeout", "2")
    assert (ran.code, ran.err.count("\n")) == (5, 1)
    assert "127.0.0.1:1 does not answer" in ran.err
    assert time.monotonic() - started < 30  # the time-out that nobody chose


def test_the_wrong_cluster_is_refused(cluster: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        f"contexts: {{p: {{bootstrap_servers: '{cluster.bootstrap_servers}', group_id: g, "
        f"cluster_id: other}}}}"
    )
    ran = run("--config", str(path))
    assert (ran.code, ran.err.count("\n")) == (4, 1)
    assert "Wrong cluster" in ran.err


def test_an_unknown_connector_is_told_with_the_nearest_name(cluster: Sandbox, reddit: str) -> None:
    ran = connectctl("--context", "sandbox-tests", "offsets", "show", "redit-source")
    assert (ran.code, "Did you mean reddit-source?" in ran.err) == (2, True)


def test_client_properties_that_librdkafka_does_not_take_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CONNECTCTL_CLIENT_SECURITY_PROTOCOL", "nonsense")
    ran = run("--bootstrap-servers", "127.0.0.1:1", "--group-id", "g")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "security.protocol" in ran.err
