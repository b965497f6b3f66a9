"""``context use``, ``add`` and ``remove`` on a real file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from connectctl.ops.config import context_edit, context_file, paths
from connectctl.ops.core.errors import Refused
from fakes.runner import invoke
from typer.testing import Result

TEXT = (
    "# mine\ncurrent: a   # now\ncontexts:\n  a: {bootstrap_servers: 'x:1'}  # one\n  b:\n    "
    "group_id: g\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(TEXT)
    path.chmod(0o640)
    return path


def run(file: Path, *args: str) -> Result:
    return invoke(["--config", str(file), "context", *args])


def test_another_context_is_current_and_the_file_keeps_its_mode(file: Path) -> None:
    done = run(file, "use", "b")
    assert (done.exit_code, file.read_text()) == (0, TEXT.replace("current: a ", "current: b "))
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(file.parent.iterdir()) == [file]


def test_the_context_of_a_sandbox_is_used_by_its_name_or_made_current_and_stays_in_its_own_file(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    own = paths.sandbox_directory("x") / "context.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("contexts: {sandbox-x: {bootstrap_servers: 'b:1', group_id: g}}\n")
    assert "b:1" in invoke(["--context", "sandbox-x", "context", "show"]).output
    refused = run(file, "remove", "sandbox-x", "--yes")
    assert (refused.exit_code, file.read_text()) == (2, TEXT)
    assert "connectctl sandbox down --name x" in refused.output
    assert run(file, "use", "sandbox-x").exit_code == 0
    assert file.read_text() == TEXT.replace("current: a ", "current: sandbox-x ")
    assert "b:1" in run(file, "show").output
    (row,) = (
        each
        for each in json.loads(run(file, "list", "-o", "json").stdout)["contexts"]
        if each["current"]
    )
    assert (row["name"], row["bootstrapServers"]) == ("sandbox-x", "b:1")
    own.unlink()
    gone = run(file, "show")
    assert (gone.exit_code, "connectctl sandbox up --name x" in gone.output) == (2, True)
    assert run(file, "use", "a").exit_code == 0
    own.write_text("contexts: {sandbox-x: {bootstrap_servers: 'b:1', group_id: g}}\n")
    monkeypatch.setenv("CONNECTCTL_CONTEXT", "sandbox-x")
    assert "b:1" in invoke(["context", "show"]).output
    assert (
        f"See connectctl --config {file} context list" in run(file, "use", "sandbox-other").output
    )


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    assert run(link, "use", "b").exit_code == 0
    assert link.is_symlink()
    assert "current: b" in file.read_text()


def test_a_dry_run_prints_the_difference_and_writes_nothing(file: Path) -> None:
    done = run(file, "use", "b", "--dry-run")
    assert (done.exit_code, file.read_text()) == (0, TEXT)
    assert "-current: a   # now\n+current: b   # now" in done.stdout


def test_a_new_file_is_for_its_owner_only_and_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.yaml"
    where = [
        "--bootstrap-servers",
        "b1:9092",
        "--group-id",
        "connect",
        "--rest",
        "http://w:1",
        "--offsets-topic",
        "o",
    ]
    more = [
        "--set",
        "client.sasl.password=env:PW",
        "--set",
        "protected=true",
        "--set",
        "rest_auth.username=ops",
    ]
    done = run(path, "add", "prod", *where, *more, "--use")
    assert done.exit_code == 0, done.output
    assert path.stat().st_mode & 0o777 == 0o600
    content = context_file.read(path).content
    entry = content.contexts["prod"]
    assert (content.current, entry.bootstrap_servers, entry.rest, entry.protected) == (
        "prod",
        "b1:9092",
        ["http://w:1"],
        True,
    )
    assert entry.client["sasl.password"] == context_file.SecretRef(env="PW")
    assert (entry.topics.offsets, entry.rest_auth.username) == ("o", "ops")
    assert run(path, "list", "-o", "name").stdout.splitlines()[0] == "prod"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["use", "c"], "Context not found in "),
        (["use", "bb"], "Did you mean b?"),
        (["remove", "c", "--yes"], "Context not found in "),
        (["remove", "b"], "standard input is not a terminal"),
        (["add", "a", "--bootstrap-servers", "x:1"], "Context a already exists"),
        (["add", "n"], "The context has no cluster"),
        (["add", "n n", "--bootstrap-servers", "x:1"], "Invalid context name"),
        (
            ["add", "n", "--bootstrap-servers", "x:1", "--set", "grup_id=g"],
            "unknown key grup_id; nothing was written",
        ),
        (
            ["add", "n", "--bootstrap-servers", "x:1", "--set", "protected=often"],
            "contexts.n.protected does not fit",
        ),
        (
            ["add", "n", "--bootstrap-servers", "x:1", "--set", "client.sasl.password=hush"],
            "is a secret",
        ),
        (
            ["add", "n", "--bootstrap-servers", "x:1", "--set", "rest_auth.token=env:"],
            "is a secret",
        ),
        (["add", "n", "--bootstrap-servers", "x:1", "--set", "client"], "--set requires KEY=VALUE"),
        (["add", "n", "--rest", "http://me:hush@w:1"], "contains a password"),
        (["add", "n", "--set", "rest=http://w:1,http://me:hush@w:2"], "contains a password"),
        (
            ["add", "n", "--rest", "http://w:1", "--set", "rest.a=b"],
            "conflicts with a value given before",
        ),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(
    file: Path, args: list[str], words: str
) -> None:
    done = run(file, *args)
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert "hush" not in done.output
    assert file.read_text() == TEXT


def test_lists_are_set_with_commas(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    lists = [
        "rest_auth.hosts=*.example.com, w-9",
        "rest=https://w1:8083,https://w2:8083",
        "applications.a.instances=i-0:80",
    ]
    done = run(path, "add", "prod", *(word for each in lists for word in ("--set", each)))
    assert done.exit_code == 0, done.output
    entry = context_file.read(path).content.contexts["prod"]
    assert entry.rest_auth.hosts == ["*.example.com", "w-9"]
    assert entry.rest == ["https://w1:8083", "https://w2:8083"]
    assert entry.applications["a"].instances == ["i-0:80"]


def test_a_context_is_removed(file: Path) -> None:
    assert run(file, "remove", "b", "--yes").exit_code == 0
    assert file.read_text() == TEXT.replace("  b:\n    group_id: g\n", "")


def test_a_difference_shows_no_password_of_the_lines_around_it(file: Path) -> None:
    file.write_text(TEXT + "    client:\n      sasl.password: hush-hush\n")
    done = run(file, "add", "n", "--rest", "http://w:1", "--dry-run")
    assert "hush-hush" not in done.output
    assert "+    rest: " in done.stdout


def test_a_file_that_somebody_changes_meanwhile_is_left_alone(file: Path) -> None:
    with pytest.raises(Refused, match="was changed meanwhile"):
        context_edit.replace_file(file, "current: b\n", b"what it was")
    assert (file.read_text(), list(file.parent.iterdir())) == (TEXT, [file])


SECRETS = """current: keep
contexts:
  keep: {bootstrap_servers: 'x:1'}
  old:
    bootstrap_servers: old:9093   # password: Pl4nt3d-remark
    group_id: g
    rest_auth:
      username: ops
      password: >-
        Pl4nt3d-folded
        Pl4nt3d-more
    client:
      security.protocol: SSL
      ssl.key.pem: |
        -----BEGIN PRIVATE KEY-----
        Pl4nt3d-body-1
        Pl4nt3d-body-2
        -----END PRIVATE KEY-----
      ssl.certificate.pem: "-----BEGIN CERTIFICATE-----\\npublic\\n
        -----END CERTIFICATE-----"
      ssl.key.password: "Pl4nt3d
        quoted"
      sasl.password: {env: KAFKA_PASSWORD}
"""


def test_a_dry_run_prints_no_line_of_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(SECRETS)
    done = run(file, "remove", "old", "--dry-run")
    assert (done.exit_code, file.read_text()) == (0, SECRETS)
    assert "Pl4nt3d" not in done.output
    assert "-----BEGIN PRIVATE" not in done.output
    assert "-      ssl.key.pem: ******\n" in done.stdout
    for shown in ("bootstrap_servers: old:9093", "BEGIN CERTIFICATE", "username: ops"):
        assert shown in done.stdout
