"""The context file is changed where it has to be, and nowhere else."""

from __future__ import annotations

import pytest
import yaml
from connectctl.ops.config.context_edit import add, remove, scalar, use
from connectctl.ops.core.errors import BadInput
from hypothesis import given
from hypothesis import strategies as st

FILE = """\
# clusters of the shop
current:   prod   # the one that counts

contexts:
    # production, ask anna
    prod:
        bootstrap_servers: "b1:9092,b2:9092"   # two of five
        group_id: 'connect-prod'
        rest: [http://w1:8083,
               http://w2:8083]
        # protected: true

    # staging
    stage: {bootstrap_servers: s:9092, group_id: c}

    last:
        group_id: g
        client:
            ssl.ca.location: |
                several
                lines
        # of last

# the end
"""


def gone(before: str, after: str) -> list[str]:
    """Lines that are in ``before`` alone."""
    left = after.splitlines()
    return [line for line in before.splitlines() if line not in left]


def test_another_current_context_changes_one_word() -> None:
    assert use(FILE, "stage") == FILE.replace("current:   prod ", "current:   stage ")


def test_a_file_without_current_gets_it_in_front_of_its_first_key() -> None:
    text = "# mine\ncontexts:\n  a: {group_id: g}\n"
    assert use(text, "a") == "# mine\ncurrent: a\ncontexts:\n  a: {group_id: g}\n"


def test_a_current_without_a_value_gets_one() -> None:
    assert use("current:\ncontexts: {a: {}}\n", "a") == "current: a\ncontexts: {a: {}}\n"


def test_a_context_is_added_behind_the_last_one_with_its_comments() -> None:
    added = add(
        FILE,
        "new",
        {"bootstrap_servers": "n:1", "client": {"sasl.password": {"env": "PW"}, "a.b": "1"}},
    )
    new = (
        "    new:\n        bootstrap_servers: n:1\n        client:\n            sasl.password: {env: PW}\n"
        '            a.b: "1"\n'
    )
    assert added == FILE.replace("        # of last\n", "        # of last\n" + new)


@pytest.mark.parametrize(
    "text",
    ["", "# nothing yet", "contexts:\n", "contexts: {}\n", "current: a\ncontexts:   # none\n"],
)
def test_the_first_context_is_added(text: str) -> None:
    added = add(text, "a", {"bootstrap_servers": "n:1", "rest": ["http://w:1"]})
    assert yaml.safe_load(added)["contexts"] == {
        "a": {"bootstrap_servers": "n:1", "rest": ["http://w:1"]}
    }
    assert all(word in added for word in ("# nothing yet", "# none") if word in text)


def test_a_file_in_braces_stays_one() -> None:
    assert add("contexts: {a: {group_id: g}}", "b", {"group_id": "h"}) == (
        'contexts: {a: {group_id: g}, "b": {"group_id": "h"}}'
    )
    assert remove("contexts: {a: {group_id: g}, b: {}}", "a") == "contexts: {b: {}}"
    assert remove("contexts: {a: {group_id: g}, b: {}}", "b") == "contexts: {a: {group_id: g}}"
    assert remove("contexts: {a: {group_id: g}}", "a") == "contexts: {}"


def test_a_context_goes_with_the_comments_in_it_and_no_others() -> None:
    removed = remove(FILE, "last")
    assert gone(FILE, removed) == [
        "    last:",
        "        group_id: g",
        "        client:",
        "            ssl.ca.location: |",
        "                several",
        "                lines",
        "        # of last",
    ]
    assert "# the end" in removed
    stage = "    stage: {bootstrap_servers: s:9092, group_id: c}\n"
    assert remove(FILE, "stage") == FILE.replace(stage, "")


def test_the_current_context_goes_with_current() -> None:
    removed = remove(FILE, "prod")
    assert "current" not in yaml.safe_load(removed)
    assert "# production, ask anna" in removed
    assert "# protected: true" not in removed


def test_the_only_context_leaves_none() -> None:
    assert remove("contexts:\n  a:\n    group_id: g\n# end\n", "a") == "contexts: {}\n# end\n"


def test_lines_that_end_as_on_windows_do_so_afterwards() -> None:
    text = FILE.replace("\n", "\r\n")
    for changed in (use(text, "last"), add(text, "new", {"group_id": "g"}), remove(text, "stage")):
        assert changed.count("\n") == changed.count("\r\n")


def test_what_another_context_refers_to_is_not_removed() -> None:
    with pytest.raises(BadInput, match="cannot be changed without a risk"):
        remove("contexts:\n  a: &a {group_id: g}\n  b: *a\n", "a")


def test_a_context_that_is_only_merged_is_not_removed() -> None:
    with pytest.raises(BadInput, match="is not written under contexts"):
        remove("x: &x {b: {}}\ncontexts:\n  <<: *x\n  a: {}\n", "b")


def test_an_alias_in_place_of_current_is_left_to_its_author() -> None:
    with pytest.raises(BadInput, match="cannot be changed without a risk"):
        use("x: &a prod\ncurrent: *a\ncontexts: {prod: {}, b: {}}\n", "b")


@given(st.text(max_size=12) | st.booleans() | st.integers())
def test_a_value_is_read_as_it_was_written(value: object) -> None:
    try:
        assert yaml.safe_load(f"a: {scalar(value)}")["a"] == value
    except yaml.reader.ReaderError:
        assert not str(value).isprintable()


NAMES = st.from_regex(r"[a-z0-9._-]{1,6}", fullmatch=True)
VALUES = st.sampled_from(["v", "a:1,b:2", "", "yes", "12", "x # y", "'", '"', "é"])
COMMENTS = st.sampled_from(["", "# c", "\n  # between", "\n    # deep\n", "\n\n# flush"])


@given(
    st.dictionaries(NAMES, VALUES, min_size=1, max_size=4),
    st.lists(COMMENTS, min_size=9, max_size=9),
    st.data(),
)
def test_whatever_the_comments_a_context_comes_and_goes(
    names: dict[str, str], notes: list[str], data: st.DataObject
) -> None:
    text = f"contexts: {notes[8]}\n"
    for k, (name, value) in enumerate(names.items()):
        text += f"  {scalar(name)}:  {notes[k]}\n    group_id: {scalar(value)} {notes[k + 4]}\n"
    before = yaml.safe_load(text)["contexts"]
    added = add(text, "new name", {"group_id": "n"})
    assert yaml.safe_load(added)["contexts"] == {**before, "new name": {"group_id": "n"}}
    assert gone(text, added) == []
    name = data.draw(st.sampled_from(sorted(names)))
    removed = remove(text, name)
    assert (yaml.safe_load(removed)["contexts"] or {}) == {
        k: v for k, v in before.items() if str(k) != name
    }
    assert remove(added, "new name").splitlines() == text.splitlines()
