"""``validate``: files, forms of output, exit codes, and what is said where there is no cluster or
only half of one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from connectctl.ops.core.errors import Unreachable
from fakes.session import FakeSession
from fakes.validating import FILE, GOOD, Validating, report, run, session, told

BAD = {
    "name": "bad",
    "config": {
        "connector.class": FILE,
        "topic": "t",
        "tasks.max": 0,
        "database.password": "hunter22",
    },
}
WARNED = {
    "name": "warned",
    "config": {"connector.class": FILE, "topic": "t", "tasks.max.enforce": "false"},
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with configurations, and no cluster anywhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    for each in (GOOD, BAD, WARNED):
        (tmp_path / f"{each['name']}.json").write_text(json.dumps(each))
    return tmp_path


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["good.json"], 0),
        (["warned.json"], 0),
        (["bad.json"], 1),
        (["good.json", "bad.json"], 1),
        (["nowhere.json"], 2),
        (["."], 1),
    ],
)
def test_exit_codes(files: Path, args: list[str], code: int) -> None:
    given = [part for name in args for part in ("-f", name)]
    assert run(*given)[0] == code


def test_fail_on_and_ignore_decide_what_counts(files: Path) -> None:
    assert run("-f", "warned.json", "--fail-on", "warning")[0] == 1
    assert run("-f", "warned.json", "--fail-on", "warning", "--ignore", "config005")[0] == 0
    assert run("-f", "bad.json", "--ignore", "CONFIG004")[0] == 0
    code, _, err = run("-f", "bad.json", "--ignore", "CONFIG999")
    assert (code, "Unknown finding: CONFIG999" in err) == (2, True)


@pytest.mark.parametrize("more", [[], ["--offline"]])
def test_without_a_cluster_what_is_undecided_is_said_once_and_is_an_info(
    files: Path, more: list[str]
) -> None:
    data = report("-f", "good.json", "-f", "warned.json", *more)
    assert data["offline"]
    assert told(data) == [
        ("CONFIG005", "warning", "warned"),
        ("UNSEEN001", "info", "the workers' validation"),
    ]
    assert [c["outcome"] for c in data["configurations"]] == ["no error found"] * 2


def test_offline_asks_no_cluster_even_if_one_is_configured(files: Path) -> None:
    class Forbidden(FakeSession):
        @property
        def settings(self) -> Any:
            raise AssertionError("nobody may look at the settings")

    assert run("-f", "good.json", "--offline", obj=Forbidden())[0] == 0


def test_secrets_are_in_no_output(files: Path) -> None:
    for form in ("table", "wide", "json", "yaml", "sarif", "junit", "github"):
        code, out, err = run("-f", "bad.json", "-o", form)
        assert code == 1
        assert "hunter22" not in out + err


def test_standard_input_is_read_once_and_its_form_is_found_out(files: Path) -> None:
    data = report("-f", "-", stdin="name=p\nconnector.class=FileStreamSink\n")
    assert [(c["file"], c["name"], c["type"]) for c in data["configurations"]] == [
        ("-", "p", "sink")
    ]
    assert told(data)[0] == ("CONFIG008", "error", "p")
    assert run("-f", "-", "-f", "-", stdin="{}")[0] == 2


def test_what_connectors_show_prints_is_taken(files: Path) -> None:
    shown = {
        "apiVersion": "connectctl/v1",
        "kind": "Connector",
        "state": "RUNNING",
        "offsets": None,
        **GOOD,
    }
    assert report("-f", "-", stdin=json.dumps(shown))["configurations"][0]["name"] == "good"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a.json, line 1 is not JSON"),
        ('{"a": [1]}', "a.json: a is a list"),
        ("[1]", "a single value"),
    ],
)
def test_what_is_no_configuration_is_one_line_on_standard_error(
    files: Path, text: str, said: str
) -> None:
    (files / "a.json").write_text(text)
    code, out, err = run("-f", "a.json")
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_two_configurations_with_one_name_and_one_without_are_told(files: Path) -> None:
    (files / "again.yaml").write_text(
        f"name: good\nconnector.class: {FILE}\ntopic: t\n---\nname: ''\nconnector.class: {FILE}\n"
    )
    data = report("-f", "good.json", "-f", "again.yaml")
    assert [f for f in told(data) if f[0].startswith("CONFIG0")] == [
        ("CONFIG002", "error", "again.yaml"),
        ("CONFIG032", "warning", "good"),
    ]


def test_properties_alone_are_called_as_their_file(files: Path) -> None:
    (files / "orders.json").write_text(
        f'{{"connector.class": "{FILE}", "topic": "t", "tasks.max": "0"}}'
    )
    assert [f for f in told(report("-f", "orders.json")) if f[0] == "CONFIG004"] == [
        ("CONFIG004", "error", "orders")
    ]


def test_github_and_sarif_name_the_file_and_junit_fails_the_case(files: Path) -> None:
    _, out, _ = run("-f", "bad.json", "-o", "github")
    assert out.startswith("::error file=bad.json,title=CONFIG004 bad::")
    _, out, _ = run("-f", "bad.json", "-o", "sarif")
    place = json.loads(out)["runs"][0]["results"][0]["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "bad.json"
    _, out, _ = run("-f", "bad.json", "-o", "junit")
    assert Xml.fromstring(out).attrib["failures"] == "1"


def test_for_people_there_is_a_line_for_each_configuration(files: Path) -> None:
    _, out, _ = run("-f", "good.json", "-f", "bad.json", "-o", "wide")
    lines = [line.split() for line in out.splitlines()[1:3]]
    assert [(line[1], line[3]) for line in lines] == [("good", "no"), ("bad", "refused")]


# ----------------------------------------------------------------------------------- with a cluster


def test_every_worker_is_asked_and_says_what_it_has(files: Path) -> None:
    data = report("-f", "good.json", obj=session("http://one:1", "http://two:2"))
    assert not data["offline"]
    assert told(data) == []
    assert [
        (w["worker"], w["exactlyOnceSupport"], w["plugin"])
        for w in data["configurations"][0]["workers"]
    ] == [
        ("one:1", "enabled", "supported"),
        ("two:2", "enabled", "supported"),
    ]


def test_workers_that_disagree_are_a_finding(files: Path) -> None:
    data = report(
        "-f",
        "good.json",
        obj=session("http://one:1", "http://two:2", refusal={"http://two:2": ["no"]}),
    )
    assert told(data) == [("CONFIG030", "error", "good"), ("EOS015", "error", "good")]
    assert data["findings"][1]["message"] == "one:1 accepts it; two:2 reports: no."


def test_a_cluster_that_cannot_be_reached_is_a_finding_and_the_rest_is_checked(files: Path) -> None:
    down = session(
        "http://one:1", errors={"http://one:1": Unreachable("gone", why="Connection refused")}
    )
    code, out, _ = run("-f", "bad.json", "-o", "json", obj=down)
    assert code == 1
    assert told(json.loads(out)) == [
        ("CONFIG004", "error", "bad"),
        ("UNSEEN001", "warning", "the validation of bad on one:1"),
    ]


def test_no_worker_to_ask_is_a_finding(files: Path) -> None:
    empty = FakeSession()
    empty.calls = Validating(urls=())
    empty.calls.refusal = {}
    assert ("UNSEEN001", "warning", "the workers' validation") in told(
        report("-f", "good.json", obj=empty)
    )


@pytest.mark.parametrize(
    ("state", "expected"), [("BOGUS", ["CONFIG033"]), ("stopped", []), ("PAUSED", [])]
)
def test_the_state_to_be_created_in_is_judged(files: Path, state: str, expected: list[str]) -> None:
    (files / "c.json").write_text(json.dumps(GOOD | {"initial_state": state}))
    found = report("-f", "c.json", "--offline")
    assert [f["id"] for f in found["findings"] if f["id"] != "UNSEEN001"] == expected
    assert found["configurations"][0]["outcome"] == ("refused" if expected else "no error found")


def test_offsets_beside_a_configuration_are_refused_with_the_way_that_works(files: Path) -> None:
    (files / "c.json").write_text(json.dumps(GOOD | {"offsets": [{"partition": {}, "offset": {}}]}))
    found = report("-f", "c.json", "--offline")
    (told_,) = [f for f in found["findings"] if f["id"] == "CONFIG034"]
    assert "connectctl offsets set good" in told_["nextStep"]


def test_what_a_later_release_refuses_is_told_for_that_release(files: Path) -> None:
    config = GOOD["config"] | {"producer.override.linger.ms": "5"}  # type: ignore[operator]
    (files / "c.json").write_text(json.dumps({"name": "c", "config": config}))
    assert [
        f["id"] for f in report("-f", "c.json", "--offline", "--for-version", "4.3")["findings"]
    ] == ["UNSEEN001"]
    later = report("-f", "c.json", "--offline", "--for-version", "5.0")
    assert ("CONFIG028", "error", "c") in told(later)
    code, _, err = run("-f", "c.json", "--for-version", "five")
    assert (code, "five is not a release" in err) == (2, True)
