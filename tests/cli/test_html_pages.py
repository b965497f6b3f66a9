"""Pages as files: well-formed, alone in the world, true to hostile names, and bounded whatever
there is to show.
"""

from __future__ import annotations

import base64
import hashlib
import re
import string
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from connectctl.cli.output.html_page import environment, grouped
from connectctl.cli.output.html_plots import (
    COLUMNS,
    FEWEST,
    HEIGHT,
    Series,
    short,
    size_bars,
    timelines,
)
from connectctl.cli.views import audit_html, cluster_html
from connectctl.cli.views.html_origin import PageOrigin
from connectctl.ops.connect.connector import Connector, State
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule_docs import rule_docs
from connectctl.ops.core.times import utc
from depth import deep
from fakes import pages
from hypothesis import example, given, settings
from hypothesis import strategies as st

VOID = {"meta", "path", "rect", "br"}
FETCHING = {
    "link",
    "script",
    "img",
    "iframe",
    "object",
    "embed",
    "base",
    "form",
    "audio",
    "video",
    "use",
    "image",
}
HOSTILE = (
    "</title></style><script>alert(1)</script>\"' onload=x <!-- \x1b[31m \u202egpj.\u2066 "
    "\x00 \udc80 &amp; \n]]>"
)


class Page(HTMLParser):
    """A page taken apart. Fails where a tag is not closed by its own."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.said: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.said.append(data)

    @property
    def words(self) -> str:
        """What a person reads."""
        return " ".join(" ".join(self.said).split())

    def of(self, name: str) -> list[str]:
        """The values of an attribute."""
        return [value for key, value in self.attributes if key == name]


def rendered(macro: str, *values: object) -> str:
    """What a macro of the templates renders."""
    call = "{% import 'macros.html' as m %}{{ m[macro](*values) }}"
    return environment().from_string(call).render(macro=macro, values=values)


EVERY = {
    "audit of one slot": lambda: audit_html.page(pages.audited(1), pages.ORIGIN),
    "audit of ten thousand slots": lambda: audit_html.page(pages.audited(10_000), pages.ORIGIN),
    "audit without violations": lambda: audit_html.page(pages.audited(bad=False), pages.ORIGIN),
    "cluster": lambda: cluster_html.page(pages.busy(), pages.ORIGIN),
    "cluster of which nothing was seen": lambda: cluster_html.page(pages.nothing(), pages.ORIGIN),
    "doctor": lambda: pages.doctored(3),
    "doctor of many": lambda: pages.doctored(55, 25, HOSTILE.replace("\udc80", "")),
}


@pytest.mark.parametrize("which", EVERY)
def test_a_page_is_well_formed_and_refers_to_nothing_but_its_own_parts(which: str) -> None:
    page = Page(EVERY[which]())
    ids = page.of("id")
    assert len(set(ids)) == len(ids)
    assert all(link[0] == "#" and link[1:] in ids for link in page.of("href"))
    assert not FETCHING & set(page.tags)
    assert not {
        name
        for name, _ in page.attributes
        if name in ("src", "style", "srcset") or name.startswith("on")
    }
    assert page.tags.count("h1") == 1
    assert next(level for level in page.tags if level in ("h2", "h3")) == "h2"
    assert page.tags.count("th") == len(page.of("scope"))


@pytest.mark.parametrize("which", EVERY)
def test_the_policy_of_a_page_allows_its_own_style_and_nothing_else(which: str) -> None:
    page = EVERY[which]()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    named = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert (
        policy
        == f"default-src 'none'; style-src 'sha256-{named}'; base-uri 'none'; form-action 'none'"
    )
    assert not re.search(r"url\(|@import|https?://", style)
    assert "prefers-color-scheme:dark" in style


def test_the_page_of_an_audit_says_what_was_asked_when_and_with_what() -> None:
    words = Page(audit_html.page(pages.audited(), pages.ORIGIN)).words
    for said in (
        "connectctl audit orders payments --sequence '$.seq' --by '$.task' --html orders.html",
        "Looked at 2023-11-14 22:13:20 UTC",
        "UTC (offset +00:00)",
        "MkU3OEVBNTcwNTJENDM2Qk at kafka-1.example.com:9092",
        "protocol of Kafka 4.1",
        "Sequence $.seq By $.task",
        "Range the first record to the end of the topics",
        "Context prod",
    ):
        assert said in words, said


def test_each_finding_that_occurs_is_explained_on_the_page_and_no_other() -> None:
    for page, found in (
        (EVERY["audit of one slot"](), pages.audited(1).findings),
        (EVERY["cluster"](), pages.busy().findings),
    ):
        told = Page(page)
        occurring = {finding.id for finding in found}
        assert {id_ for id_ in told.of("id") if id_ in rule_docs()} == occurring
        assert {f"#{id_}" for id_ in occurring} <= set(told.of("href"))
        for id_ in occurring:
            assert " ".join(rule_docs()[id_].text.split()) in told.words


def test_findings_of_one_id_are_listed_together_and_never_without_bound() -> None:
    found = [
        Finding("CLUSTER004", Severity.WARNING, f"w{n}", "silent", "Look at it.")
        for n in range(5_000)
    ]
    said = Page(rendered("findings", grouped(found)))
    assert said.tags.count("li") == 1
    assert "4,995 more" in said.words
    assert "… and 4,980 more CLUSTER004" in said.words
    assert said.words.count("Look at it.") == 1


def test_a_finding_without_a_story_has_no_link() -> None:
    found = (Finding("NEW999", Severity.INFO, "x", "y"),)
    page = cluster_html.page(replace(pages.cluster(), findings=found), pages.ORIGIN)
    assert "NEW999" in page
    assert not {"#NEW999", "#meanings"} & set(Page(page).of("href"))


def test_findings_are_listed_with_the_worst_first() -> None:
    found = [Finding(id_, severity, "x", "y") for severity in Severity for id_ in ("B", "A")]
    assert [(same[0].severity.value, same[0].id) for same in grouped(found[::-1])] == [
        (severity, id_) for severity in ("error", "warning", "info") for id_ in ("A", "B")
    ]


def hostile(name: str) -> list[tuple[str, str]]:
    """Pages with ``name`` wherever something from outside may stand, each beside the same with a
    harmless one.
    """
    found = []
    for each in (name, "harmless"):
        finding = Finding("CLUSTER012", Severity.WARNING, each, each, each)
        broken = pages.connector(
            each, State.FAILED, 2, {"connector.class": each, "offsets.storage.topic": each}
        )
        broken = replace(
            broken, verdict=replace(broken.verdict, detail=each, cause=each), workers=(each,)
        )
        view = replace(pages.cluster(broken, findings=(finding,)), cluster_id=each)
        view = replace(
            view, workers=tuple(replace(w, version=each, problem=each) for w in view.workers)
        )
        audit = pages.audited(2, topic=each, source=each, detail=each)
        origin = PageOrigin((each,), 0.0, each, (each,), each, each)
        found.append((audit_html.page(audit, origin), cluster_html.page(view, origin)))
    return [(found[0][n], found[1][n]) for n in (0, 1)]


@settings(max_examples=deep(60, 25))
@example("-")
@example("b")
@given(
    st.text(
        alphabet=st.one_of(
            st.sampled_from(HOSTILE + string.punctuation), st.characters(exclude_categories=[])
        ),
        min_size=1,
    )
)
def test_whatever_a_name_holds_it_stays_text(name: str) -> None:
    for page, harmless in hostile(name):
        assert Page(page).tags == Page(harmless).tags
        shown = page.replace("\n", "")
        assert "\x00" not in shown
        assert shown.isprintable() or not re.search(
            "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]", shown
        )
        page.encode()


def test_a_script_in_every_name_is_shown_and_is_none() -> None:
    for page, harmless in hostile(HOSTILE):
        assert Page(page).tags == Page(harmless).tags
        assert "<script" not in page
        assert "&lt;script&gt;" in page
        assert "\\u202e" in page


def test_secrets_of_addresses_are_not_on_a_page() -> None:
    audit = pages.audited(
        1, source='{"url":"jdbc:postgresql://me:hunter2@db/x"}', detail="http://me:hunter2@h failed"
    )
    assert "hunter2" not in audit_html.page(audit, pages.ORIGIN)
    origin = replace(pages.ORIGIN, bootstrap="sasl://me:hunter2@kafka:9092")
    assert "hunter2" not in cluster_html.page(pages.busy(), origin)


def test_a_text_longer_than_anybody_reads_is_cut_and_says_so() -> None:
    page = cluster_html.page(pages.cluster(pages.connector("x" * 1_000_000)), pages.ORIGIN)
    assert f">{'x' * 4000}… (996,000 more characters)<" in page
    assert "x" * 4001 not in page


def test_ten_thousand_connectors_make_a_page_that_a_browser_opens_and_the_worst_are_on_it() -> None:
    many = [pages.connector(f"{pages.LONG}-{n:05}", tasks=10) for n in range(9_990)]
    broken = [pages.connector(f"broken-{n}", State.FAILED, 100) for n in range(10)]
    page = cluster_html.page(pages.cluster(*many, *broken), pages.ORIGIN)
    assert len(page) < 2_000_000
    words = Page(page).words
    assert all(f"broken-{n}" in words for n in range(10))
    assert "1,000 of 10,000" in words
    assert "10,000 connectors: 9,990 RUNNING, 10 FAILED" in words


def test_ten_thousand_workers_and_partitions_make_bounded_pages_too() -> None:
    view = pages.busy()
    (worker, *_) = view.workers
    many = tuple(replace(worker, address=f"w{n}:8083", problem="gone") for n in range(10_000))
    page = cluster_html.page(replace(view, workers=many), pages.ORIGIN)
    assert len(page) < 1_000_000
    assert "the first 500 of 10,000" in page
    audit = pages.audited()
    audit.summary.parts = [replace(audit.summary.parts[0], partition=n) for n in range(10_000)]
    page = audit_html.page(audit, pages.ORIGIN)
    assert len(page) < 1_000_000
    assert "the first 500 of 10,000" in page


# ----------------------------------------------------------------------------------------- clusters


def test_what_could_not_be_seen_is_named_and_never_shown_as_none() -> None:
    words = Page(EVERY["cluster of which nothing was seen"]()).words
    assert "unknown connectors could not be read; 0 workers in the group" in words
    assert "There are no connectors" not in words
    assert "healthy" not in words
    for missing in (
        "Workers: none is in the group",
        "The config topic: it was not found",
        "Connectors: neither",
    ):
        assert missing in words


def test_a_cluster_without_connectors_says_that_there_are_none() -> None:
    words = Page(cluster_html.page(pages.cluster(), pages.ORIGIN)).words
    assert "There are no connectors." in words
    assert "0 connectors; 3 workers in the group" in words


def test_a_cluster_is_healthy_only_as_far_as_it_could_be_seen() -> None:
    view = pages.cluster(pages.connector("a"))
    partly = replace(view, findings=())
    assert "healthy, as far as could be read" in Page(cluster_html.page(partly, pages.ORIGIN)).words
    whole = replace(partly, workers=view.workers[:2], topics=view.topics[:1])
    words = Page(cluster_html.page(whole, pages.ORIGIN)).words
    assert "Connect cluster connect-prod healthy 1 connector: 1 RUNNING" in words
    assert "All requests were answered." in words
    other = replace(whole, connectors_from="topics")
    assert (
        "as in the config and status topics" in Page(cluster_html.page(other, pages.ORIGIN)).words
    )
    rebalancing = replace(whole, group=replace(view.group, state="PreparingRebalance"))
    assert "the group is rebalancing" in Page(cluster_html.page(rebalancing, pages.ORIGIN)).words


def test_tasks_that_do_not_run_are_listed_with_their_workers_the_first_ten() -> None:
    words = Page(
        cluster_html.page(pages.cluster(pages.connector("a", State.DEGRADED)), pages.ORIGIN)
    ).words
    assert "2/3 running 0: FAILED on worker-one.example.com:8083" in words
    unassigned = pages.connector("a", State.UNASSIGNED, 25)
    lost = replace(unassigned, connector=replace(unassigned.connector, assigned={}))
    words = Page(cluster_html.page(pages.cluster(lost), pages.ORIGIN)).words
    assert "9: UNASSIGNED not assigned to a worker … and 15 more" in words


@pytest.mark.parametrize(
    ("kind", "config", "topic", "shown"),
    [
        ("source", {"name": "a"}, "offsets", "topic offsets"),
        ("source", {"name": "a"}, None, "unknown: the offsets topic was not found"),
        ("source", {"offsets.storage.topic": "own"}, "offsets", "topic own"),
        (
            "source",
            {"producer.override.bootstrap.servers": "x:1"},
            "offsets",
            "unknown, by producer.override",
        ),
        ("sink", {"name": "a"}, "offsets", "group connect-a"),
        ("sink", {"consumer.override.group.id": "g"}, "offsets", "group g"),
        ("sink", {"consumer.override.group.id": "${file:x}"}, "offsets", "group unknown: "),
        ("source", {}, "offsets", "unknown"),
        (None, {"name": "a"}, "offsets", "unknown"),
    ],
)
def test_where_offsets_are_is_told_as_far_as_the_configuration_says(
    kind: str | None, config: dict[str, str], topic: str | None, shown: str
) -> None:
    assert cluster_html.offsets_of(
        Connector("a", None, config=config, type=kind), topic
    ).startswith(shown)


# -------------------------------------------------------------------------------------------- plots


def drawing(counts: dict[int, int], width: int = 1000) -> str:
    return rendered("timelines", timelines([Series("gaps", "Records", counts)], width))


def columns(plot: str) -> list[dict[str, str]]:
    return [
        dict(re.findall(r'(\w+)="([^"]*)"', rect)) for rect in re.findall(r"<rect [^>]*>", plot)
    ]


@given(
    st.dictionaries(st.integers(0, 10**10), st.integers(0, 10**9), max_size=60),
    st.sampled_from([1000, 4096000]),
)
def test_every_plot_has_room_for_its_columns_and_counts_each_once(
    counts: dict[int, int], width: int
) -> None:
    plot = drawing(counts, width)
    Page(plot)
    (box,) = re.findall(r'viewBox="0 0 (\d+) (\d+)"', plot)
    assert FEWEST <= int(box[0]) <= COLUMNS
    drawn = columns(plot)
    for rect in drawn:
        assert float(rect["x"]) >= 0
        assert float(rect["x"]) + float(rect["width"]) <= int(box[0])
        assert float(rect["y"]) >= 0
        assert float(rect["y"]) + float(rect["height"]) == pytest.approx(HEIGHT, abs=0.11)
        assert float(rect["height"]) > 0
    hints = [int(n.replace(",", "")) for n in re.findall(r": ([\d,]+)</title></rect>", plot)]
    assert sum(hints) == sum(counts.values())
    assert len(hints) == len(drawn) <= COLUMNS


def test_ten_thousand_slots_become_as_many_columns_as_can_be_told_apart() -> None:
    plot = drawing(dict.fromkeys(range(10_000), 3))
    assert len(columns(plot)) == 159
    assert "30,000 in all, at most 189 in 1m03s" in plot
    assert "<summary>Numbers</summary>" in plot
    assert "the 50 highest of 159 columns" in plot


def test_one_slot_is_a_column_and_not_a_wall() -> None:
    plot = drawing({1_700_000_000: 1})
    (rect,) = columns(plot)
    assert (float(rect["width"]) <= 1, f"0 0 {FEWEST} " in plot) == (True, True)
    assert 11 <= float(rect["x"]) <= 13, "in the middle of the time around it"
    assert "2023-11-14 22:13:20 + 1 s: 1<" in plot


def test_sizes_that_nothing_has_are_shown_as_zero() -> None:
    bars = size_bars([("0–1", 1), ("2–3", 0), ("4–7", 1_000_000)])
    page = Page(rendered("bars", ("records", "transactions"), bars, "by size"))
    assert page.words == "by size records transactions share 0–1 1 2–3 0 4–7 1,000,000"
    assert page.of("width") == ["0.5%", "0", "100%"]


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (950, "950"), (16_000, "16k"), (2_100_000, "2.1M"), (1 << 63, "9,223,372T")],
)
def test_numbers_of_an_axis_fit_it(number: int, shown: str) -> None:
    assert short(number) == shown


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_any_timestamp_that_a_producer_may_set_is_shown(timestamp: int) -> None:
    assert utc(timestamp)
    assert utc(timestamp, "milliseconds", zone=True)


def test_times_are_those_of_utc() -> None:
    assert utc(pages.NOON) == "2023-11-14 22:13:20"
    assert utc(pages.NOON + 7, "milliseconds", zone=True) == "2023-11-14T22:13:20.007+00:00"
    assert utc(pages.NOON * 1000) == "1700000000000000 ms after 1970", (
        "microseconds, as some producers set"
    )
    assert utc(None) == "-"


def test_a_table_without_rows_is_whole() -> None:
    assert Page(rendered("table", [("a", ""), ("b", "n")], [], "c")).words == "c a b"
