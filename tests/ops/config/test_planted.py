"""Each kind of secret that configurations of connectors really have is hidden, and what is none
stays.
"""

from __future__ import annotations

import pytest
from connectctl.ops.config import masking
from connectctl.ops.config.masking import BY_NAME, MASK, config_of, masked, secrets_of, value_of
from fakes.secrets import HARMLESS, SHAPES, Planted

BY_NAME_ALONE = {
    "http.auth",
    "db.pw",
    "userpass",
    "hash.salt",
    "sim.pin",
    "snmp.community",
    "connection.password",
}
IN_PART = {"connection.url", "sas.url", "pg.file", "oracle.ezconnect", "form.body", "odbc.string"}


def test_there_are_more_kinds_than_were_measured() -> None:
    assert len(SHAPES) >= 68


@pytest.mark.parametrize("name", SHAPES)
def test_a_planted_secret_is_hidden(name: str) -> None:
    planted = Planted()
    value = planted.value(SHAPES[name])
    shown = value_of(name, value)
    assert planted.found_in(shown) == []
    assert MASK in shown
    assert value_of(name, shown) == shown


@pytest.mark.usefixtures("_nothing_seen")
@pytest.mark.parametrize("name", SHAPES)
def test_a_planted_secret_is_hidden_where_a_trace_repeats_it(name: str) -> None:
    planted = Planted()
    config = {name: planted.value(SHAPES[name])}
    masking.remember(config)
    for secret in secrets_of(config):
        assert secret not in masked(f"login with {secret} failed")


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_no_secret_stays(name: str) -> None:
    assert value_of(name, HARMLESS[name]) == HARMLESS[name]


@pytest.mark.parametrize(
    "value", ['[{"name": "Accept", "value": "*/*"}]', '[["topic", "a"], ["user", "me"]]', "a\nb"]
)
def test_a_structure_without_a_secret_stays(value: str) -> None:
    assert value_of("headers", value) == value


@pytest.mark.parametrize("name", sorted(BY_NAME_ALONE))
def test_what_is_hidden_by_its_name_says_so(name: str) -> None:
    assert value_of(name, "Pl4nt3d") == BY_NAME
    assert config_of({name: "Pl4nt3d"}, frozenset({name})) == {name: MASK}


@pytest.mark.parametrize("name", sorted(IN_PART))
def test_the_rest_of_a_value_stays_in_sight(name: str) -> None:
    shape = SHAPES[name]
    shown = value_of(name, shape.format("Pl4nt3d"))
    assert BY_NAME not in shown
    assert shown.split(MASK)[0] == shape.split("a b {}")[0].split("{}")[0]


@pytest.fixture
def _nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "seen_secrets", masking.SeenSecrets())
