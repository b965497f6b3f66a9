"""Flags over environment over file, with the origin of every value, and no secret ever in sight."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from connectctl.ops.config import context_file, settings
from connectctl.ops.core.errors import BadInput
from fakes.runner import invoke
from hypothesis import given
from hypothesis import strategies as st

FILE = """\
current: prod
contexts:
  prod:
    bootstrap_servers: broker-1:9092
    group_id: from-file
    cluster_id: abc
    rest: [https://user:hunter2@worker-1:8083]
    rest_auth: {username: ops, password: {env: CONNECT_PASSWORD}}
    topics: {config: connect-configs}
    client:
      security.protocol: SASL_SSL
      sasl.password: hunter2
      ssl.key.location: /etc/key.pem
      sasl.username: {file: /run/secrets/user}
    clusters:
      target: {bootstrap_servers: "t:9092", client: {sasl.password: hunter2}}
    workers: {driver: manual}
    protected: true
"""


@pytest.fixture
def parsed(tmp_path: Path) -> context_file.Parsed:
    path = tmp_path / "config.yaml"
    path.write_text(FILE)
    return context_file.read(path)


def merged(parsed: context_file.Parsed, **flags: object) -> settings.Settings:
    return settings.merge(
        flags,
        {"CONNECTCTL_CLUSTER_ID": "from-env", "CONNECTCTL_GROUP_ID": "from-env"},
        parsed,
        "prod",
    )


def test_flags_win_over_the_environment_and_the_environment_over_the_file(
    parsed: context_file.Parsed,
) -> None:
    found = merged(parsed, group_id="from-flag")
    assert found.values["group_id"] == settings.Setting("from-flag", "--group-id")
    assert found.values["cluster_id"] == settings.Setting(
        "from-env", "environment CONNECTCTL_CLUSTER_ID"
    )
    assert found.values["bootstrap_servers"].origin == f"{parsed.path} line 4"
    assert found.get("protected") is True


def test_client_properties_are_passed_through_whole(parsed: context_file.Parsed) -> None:
    client = merged(parsed).section("client")
    assert client["security.protocol"] == "SASL_SSL"
    assert client["sasl.username"] == settings.SecretSource("file", "/run/secrets/user")


def test_client_properties_come_from_the_environment_too() -> None:
    found = settings.merge({}, {"CONNECTCTL_CLIENT_SECURITY_PROTOCOL": "SSL"}, None, None)
    assert found.section("client") == {"security.protocol": "SSL"}


def test_nothing_that_is_printed_holds_a_secret(parsed: context_file.Parsed) -> None:
    printed = "\n".join(" ".join(row) for row in merged(parsed).masked())
    assert "hunter2" not in printed
    assert "/etc/key.pem" in printed
    assert "client.sasl.password ******" in printed
    assert "****** (env CONNECT_PASSWORD)" in printed


@given(
    st.sampled_from(
        [
            "sasl.password",
            "ssl.key.password",
            "sasl.jaas.config",
            "rest_auth.token",
            "oauth.client.secret",
        ]
    )
)
def test_a_value_is_masked_by_its_name(name: str) -> None:
    assert settings.mask(name, "hunter2").startswith(settings.MASK)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("contexts:\n  p:\n    groupid: x", "line 3: unknown key groupid. Did you mean group_id?"),
        (
            "contexts:\n  p:\n    topics:\n      confg: x",
            "line 4: unknown key confg. Did you mean config?",
        ),
        ("curent: p", "line 1: unknown key curent. Did you mean current?"),
        (
            "contexts:\n  p:\n    zzz: 1",
            "line 3: unknown key zzz. Known keys here: bootstrap_servers",
        ),
        (
            "contexts:\n  p:\n    protected: perhaps",
            "line 3: the value of contexts.p.protected does not fit",
        ),
        ("contexts:\n  p:\n    client:\n      a: {envv: X}", "line 4"),
        (
            "contexts:\n  p:\n    client: {a: {env: X, file: Y}}",
            "exactly one of env, file or command",
        ),
        ("contexts: [", "invalid YAML"),
        ("- a", "does not fit"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(BadInput) as error:
        settings.merge({}, {}, context_file.read(path), "p")
    assert message in str(error.value)


def test_an_unreadable_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        context_file.read(tmp_path / "none.yaml")


def test_the_context_is_the_one_asked_for_else_current_else_the_only_one(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("contexts: {a: {}, b: {}}")
    two = context_file.read(path)
    assert settings.pick_context("b", "--context", two) == "b"
    assert settings.pick_context(None, "", two) is None
    path.write_text("contexts: {a: {}}")
    assert settings.pick_context(None, "", context_file.read(path)) == "a"
    with pytest.raises(BadInput, match="Context not found: z"):
        settings.pick_context("z", "--context", two)


SOME_BROKEN = """\
current: fine
contexts:
  fine: {bootstrap_servers: "x:1"}
  misspelt: {bootstrap: "x:1"}
  wrong: {protected: perhaps}
  odd: {workers: {driver: command, restart: x}}
  unset: {client: {sasl.password: {env: CONNECTCTL_NO_SUCH_VARIABLE}}}
  lost: {client: {sasl.password: {file: /nowhere/secret}}}
  asks: {client: {sasl.password: {command: "touch ran; exit 1"}}}
  two: {client: {sasl.password: {env: A, file: B}}}
"""


def test_a_broken_context_does_not_block_the_others(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(SOME_BROKEN)
    parsed = context_file.read(path)
    assert (
        settings.merge({}, {}, parsed, settings.pick_context(None, "", parsed)).get(
            "bootstrap_servers"
        )
        == "x:1"
    )
    assert set(parsed.broken) == {"misspelt", "wrong", "odd"}
    with pytest.raises(BadInput, match="line 4: unknown key bootstrap"):
        settings.merge({}, {}, parsed, settings.pick_context("misspelt", "--context", parsed))


def test_context_list_tells_which_context_is_broken_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "config.yaml"
    path.write_text(SOME_BROKEN)
    done = invoke(["--config", str(path), "context", "list", "-o", "json"])
    assert done.exit_code == 0
    problems = {each["name"]: each["problem"] for each in json.loads(done.stdout)["contexts"]}
    assert (problems["fine"], problems["asks"]) == (None, None)
    for name, word in {
        "misspelt": "line 4: unknown key bootstrap",
        "wrong": "protected",
        "odd": "requires change",
        "unset": "CONNECTCTL_NO_SUCH_VARIABLE",
        "lost": "/nowhere/secret cannot be read",
        "two": "exactly one of",
    }.items():
        assert word in problems[name]
    assert not (tmp_path / "ran").exists()
    shown = invoke(["--config", str(path), "context", "list"])
    assert shown.stdout.count("broken") == 6
    assert "misspelt: " in shown.stderr
