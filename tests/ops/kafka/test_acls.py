"""What the authorizer makes of bindings; that the brokers say the same is
tests/live/test_preflight_acls.py's to show.
"""

from __future__ import annotations

import pytest
from connectctl.ops.kafka.acls import (
    Acls,
    Action,
    Authorizer,
    Because,
    Binding,
    Operation,
    Pattern,
    Resource,
)
from fakes.acls import allow
from hypothesis import given
from hypothesis import strategies as st

ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = list(Operation)[1:8]
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
TOPIC, GROUP, ID = Resource.TOPIC, Resource.GROUP, Resource.TRANSACTIONAL_ID
ME = "User:me"
HERE = "10.0.0.1"


def decide(
    *bindings: Binding, asked: Operation = WRITE, name: str = "t", host: str = HERE
) -> Because:
    acls = Acls(bindings, Authorizer(super_users=frozenset({"User:root"})))
    decision = acls.decide(Action(ME, asked, TOPIC, name), host)
    assert decision.allowed is (decision.because is Because.ALLOWED)
    return decision.because


@pytest.mark.parametrize(
    ("binding", "because"),
    [
        (allow(ME, WRITE, TOPIC, "t"), Because.ALLOWED),
        (allow(ME, ALL, TOPIC, "t"), Because.ALLOWED),
        (allow("User:*", WRITE, TOPIC, "t"), Because.ALLOWED),
        (allow(ME, WRITE, TOPIC, "*"), Because.ALLOWED),
        (allow(ME, WRITE, TOPIC, "t", host=HERE), Because.ALLOWED),
        (allow(ME, WRITE, TOPIC, "t", prefixed=True), Because.ALLOWED),
        (allow(ME, WRITE, TOPIC, "t", host="10.0.0.2"), Because.NOT_MINE),
        (allow("User:me2", WRITE, TOPIC, "t"), Because.NOT_MINE),
        (allow("Group:me", WRITE, TOPIC, "t"), Because.NOT_MINE),
        (allow(ME, READ, TOPIC, "t"), Because.NOT_MINE),
        (allow(ME, WRITE, GROUP, "t"), Because.NO_ACL),
        (allow(ME, WRITE, TOPIC, "t2"), Because.NO_ACL),
        (allow(ME, WRITE, TOPIC, "t2", prefixed=True), Because.NO_ACL),
        (allow(ME, WRITE, TOPIC, "*", prefixed=True), Because.NO_ACL),
        (allow(ME, WRITE, TOPIC, "t", deny=True), Because.DENIED),
    ],
)
def test_a_binding_counts_for_its_principal_host_operation_and_pattern(
    binding: Binding, because: Because
) -> None:
    assert decide(binding) is because


@pytest.mark.parametrize(
    "deny", [allow(ME, WRITE, TOPIC, "t", deny=True), allow("User:*", ALL, TOPIC, "*", deny=True)]
)
def test_a_deny_wins_over_every_allow(deny: Binding) -> None:
    assert decide(allow(ME, WRITE, TOPIC, "t"), allow(ME, ALL, TOPIC, "*"), deny) is Because.DENIED


@pytest.mark.parametrize("operation", [READ, WRITE, DELETE, ALTER, DESCRIBE, ALL])
def test_some_operations_bring_describe_with_them(operation: Operation) -> None:
    assert decide(allow(ME, operation, TOPIC, "t"), asked=DESCRIBE) is Because.ALLOWED


@pytest.mark.parametrize("operation", [CREATE, ALTER_CONFIGS, DESCRIBE_CONFIGS])
def test_others_do_not_bring_describe(operation: Operation) -> None:
    assert decide(allow(ME, operation, TOPIC, "t"), asked=DESCRIBE) is Because.NOT_MINE


def test_alter_configs_brings_describe_configs_and_alter_does_not() -> None:
    assert decide(allow(ME, ALTER_CONFIGS, TOPIC, "t"), asked=DESCRIBE_CONFIGS) is Because.ALLOWED
    assert decide(allow(ME, ALTER, TOPIC, "t"), asked=DESCRIBE_CONFIGS) is Because.NOT_MINE


def test_denying_write_does_not_deny_describe() -> None:
    deny = allow(ME, WRITE, TOPIC, "t", deny=True)
    assert decide(allow(ME, READ, TOPIC, "t"), deny, asked=DESCRIBE) is Because.ALLOWED


def test_super_users_may_do_what_is_denied() -> None:
    acls = Acls(
        (allow("User:root", ALL, TOPIC, "*", deny=True),),
        Authorizer(super_users=frozenset({"User:root"})),
    )
    assert acls.decide(Action("User:root", WRITE, TOPIC, "t"), HERE).because is Because.SUPER_USER


def test_only_a_resource_that_nobody_has_a_binding_for_is_open_where_the_brokers_say_so() -> None:
    acls = Acls((allow("User:other", READ, TOPIC, "taken"),), Authorizer(open_by_default=True))
    assert acls.decide(Action(ME, WRITE, TOPIC, "free"), HERE).because is Because.OPEN
    assert acls.decide(Action(ME, WRITE, TOPIC, "taken"), HERE).because is Because.NOT_MINE


def test_a_host_that_is_not_known_is_helped_by_bindings_for_any_host_only() -> None:
    assert decide(allow(ME, WRITE, TOPIC, "t", host=HERE), host="*") is Because.NOT_MINE
    assert decide(allow(ME, WRITE, TOPIC, "t"), host="*") is Because.ALLOWED


def test_all_bindings_that_allow_are_told() -> None:
    prefix, literal = allow(ME, WRITE, ID, "a-", prefixed=True), allow(ME, WRITE, ID, "a-b-0")
    decision = Acls((prefix, literal)).decide(Action(ME, WRITE, ID, "a-b-0"), HERE)
    assert set(decision.bindings) == {prefix, literal}


def test_words_are_spelled_as_kafkas_tools_spell_them() -> None:
    assert (ID.word, Operation.DESCRIBE_CONFIGS.word) == ("TransactionalId", "DescribeConfigs")
    assert (
        str(allow(ME, WRITE, ID, "a-", prefixed=True))
        == "Allow User:me Write on TransactionalId a-… (prefixed)"
    )


NAMES = st.text("ab*", min_size=1, max_size=3)
BINDINGS = st.builds(
    allow,
    st.sampled_from([ME, "User:*", "User:x"]),
    st.sampled_from(list(Operation)[1:]),
    st.sampled_from([TOPIC, ID]),
    NAMES,
    prefixed=st.booleans(),
    host=st.sampled_from(["*", HERE, "10.0.0.2"]),
    deny=st.booleans(),
)


@given(st.lists(BINDINGS, max_size=12), NAMES)
def test_looking_by_prefix_finds_what_looking_at_every_binding_finds(
    bindings: list[Binding], name: str
) -> None:
    found = list(Acls(tuple(bindings)).on(TOPIC, name))
    assert sorted(found) == sorted(b for b in bindings if b.resource is TOPIC and b.covers(name))


@given(st.lists(BINDINGS, max_size=12), NAMES, st.sampled_from(list(Operation)[2:]))
def test_a_binding_more_that_allows_never_takes_anything_away(
    bindings: list[Binding], name: str, operation: Operation
) -> None:
    action = Action(ME, operation, TOPIC, name)
    more = allow(ME, operation, TOPIC, name)
    before, after = (Acls(tuple(b)).decide(action, HERE) for b in (bindings, [*bindings, more]))
    assert after.allowed or after.because is Because.DENIED
    assert before.because is not Because.DENIED or after.because is Because.DENIED


@given(BINDINGS)
def test_an_unknown_pattern_covers_nothing(binding: Binding) -> None:
    strange = Binding(
        binding.resource, binding.name, Pattern.UNKNOWN, ME, "*", ALL, binding.permission
    )
    assert not strange.covers(binding.name)
