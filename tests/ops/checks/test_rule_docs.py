"""Every finding that the program can have is in the catalogue, once, with something to read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from connectctl.ops.checks import rule_docs
from connectctl.ops.core.errors import BadInput

ROOT = Path(__file__).parents[3]
_ID = re.compile(r'"([A-Z]{3,}\d{3})"')


def test_every_id_in_the_source_has_a_story() -> None:
    sources = [path for top in ("ops", "cli") for path in (ROOT / top).rglob("*.py")]
    ids = {id_ for path in sources for id_ in _ID.findall(path.read_text())}
    assert ids - rule_docs.stories().keys() == set()
    assert len(ids) > 100


@pytest.mark.parametrize("id_", rule_docs.stories())
def test_a_story_is_more_than_its_title(id_: str) -> None:
    story = rule_docs.story(id_)
    assert story.title.strip("`") == story.title
    assert not story.title.endswith(".")
    assert len(story.text) >= len(story.title)
    if story.source is not None:
        assert len(story.text.split("\n\n")) > 1
        assert len(story.text) > 120


def test_rules_say_where_they_are_written() -> None:
    assert all(rule.source and rule.why for rule in rule_docs._rules())


def test_ids_are_found_in_any_case_and_a_wrong_one_tells_the_nearest() -> None:
    assert rule_docs.story("store001").id == "STORE001"
    with pytest.raises(BadInput, match="Did you mean STORE0"):
        rule_docs.story("STOR001")
