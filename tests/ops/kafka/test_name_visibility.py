"""Names that stand for all others: where each of them may be described, every name may."""

from __future__ import annotations

from connectctl.ops.kafka.acls import ANY, Acls, Action, Authorizer, Binding, Operation, Resource
from connectctl.ops.kafka.name_visibility import hidden_gaps, samples
from fakes.acls import allow
from hypothesis import given
from hypothesis import strategies as st

ID, DESCRIBE, TOKEN = Resource.TRANSACTIONAL_ID, Operation.DESCRIBE, "~token~"
ME, OTHER = "User:me", "User:other"
NAMES = st.text("ab-", min_size=1, max_size=4)
BINDINGS = st.lists(
    st.builds(
        allow,
        st.sampled_from([ME, OTHER, "User:*"]),
        st.sampled_from([DESCRIBE, Operation.WRITE, Operation.ALL, Operation.CREATE]),
        st.just(ID),
        st.one_of(NAMES, st.just(ANY)),
        prefixed=st.booleans(),
        deny=st.booleans(),
    ).map(
        lambda b: (
            b
            if b.name != ANY
            else allow(b.principal, b.operation, ID, ANY, deny=b.permission == "DENY")
        )
    ),
    max_size=6,
)


def sees(acls: Acls, name: str) -> bool:
    return acls.decide(Action(ME, DESCRIBE, ID, name), "h").allowed


@given(BINDINGS, st.booleans(), st.lists(NAMES, max_size=2), NAMES)
def test_who_may_describe_the_samples_may_describe_every_name(
    bindings: list[Binding], open_by_default: bool, prefixes: list[str], name: str
) -> None:
    acls = Acls(tuple(bindings), Authorizer("", frozenset(), open_by_default))
    asked = samples(bindings, ID, prefixes, TOKEN)
    if all(sees(acls, sample) for sample in asked) and name.startswith(tuple(prefixes) or ("",)):
        assert sees(acls, name)


def test_only_patterns_of_the_resource_and_of_the_prefixes_are_asked_about() -> None:
    bindings = [
        allow(OTHER, DESCRIBE, ID, "a-1"),
        allow(OTHER, DESCRIBE, ID, "a-", prefixed=True),
        allow(OTHER, DESCRIBE, ID, "b-", prefixed=True),
        allow(OTHER, DESCRIBE, ID, ANY),
        allow(OTHER, DESCRIBE, Resource.TOPIC, "a-topic"),
    ]
    assert list(samples(bindings, ID, ["a-"], TOKEN)) == [f"a-{TOKEN}", "a-1"]
    assert list(samples(bindings, ID, [], TOKEN)) == [TOKEN, "a-1", f"a-{TOKEN}", f"b-{TOKEN}"]


def test_what_is_hidden_is_told_by_its_right_and_much_of_it_as_all() -> None:
    asked = samples(
        [allow(OTHER, DESCRIBE, ID, f"p{n}-", prefixed=True) for n in range(9)], ID, [], TOKEN
    )
    (gap,) = hidden_gaps("transactional ids", ID, asked, [f"p3-{TOKEN}"])
    assert str(gap.right) == "Describe on TransactionalId p3-… (prefixed)"
    (gap,) = hidden_gaps("transactional ids", ID, asked, list(asked))
    assert str(gap.right) == "Describe on TransactionalId *"
