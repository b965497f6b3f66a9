"""The pages of a real cluster and of an audit of real records say what the commands say, and a
browser shows them.
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import browser, executable
from connectctl.ops.core.rule_docs import rule_docs
from live.real import FILE_SOURCE, connectctl, connector, create_topic, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


def shown(file: Path, home: Path) -> str:
    """What the page says: as a browser has it where there is one, which then has nothing to
    complain of.
    """
    if executable() is None:
        return " ".join(unescape(re.sub("<[^>]+>", " ", file.read_text())).split())
    with browser(home) as tab:
        tab.open(file, width=360, dark=True)
        assert tab.console == []
        assert tab.asked == [file.as_uri()]
        assert tab.value("document.scrollingElement.scrollWidth <= innerWidth")
        return " ".join(str(tab.value("document.body.textContent")).split())


def test_the_page_of_a_real_cluster_has_its_workers_topics_and_connectors(
    cluster: Sandbox, tmp_path: Path
) -> None:
    context = ("--context", f"sandbox-{cluster.spec.name}")
    topic = create_topic(cluster.bootstrap_servers, "pages-lines", 1)
    file = tmp_path / "cluster.html"
    config = {"connector.class": FILE_SOURCE, "file": str(tmp_path / "lines.txt"), "topic": topic}
    with connector(cluster, "pages-lines", config):
        ran = connectctl(*context, "cluster", "show", "--html", str(file), "-o", "json")
        assert ran.code == 0, ran.err
    data, page = ran.json, shown(file, tmp_path)
    assert data["clusterId"] in page
    for worker in data["workers"]:
        assert worker["address"] in page
    for internal in data["topics"]:
        assert internal["name"] in page
    assert f"topic {next(t['name'] for t in data['topics'] if t['role'] == 'offsets')}" in page
    assert "pages-lines" in page
    assert "broker 1: protocol of Kafka " in page
    assert f"sandbox-{cluster.spec.name} cluster show --html" in page


def test_the_page_of_a_real_audit_has_its_findings_and_their_stories(
    cluster: Sandbox, tmp_path: Path
) -> None:
    topic = create_topic(cluster.bootstrap_servers, "pages-audited", 1, policy="delete")
    write(
        cluster.bootstrap_servers,
        topic,
        *((f"k{n % 2}", {"seq": n // 2}) for n in (0, 1, 2, 3, 2, 3, 8, 9)),
    )
    file = tmp_path / "audit.html"
    context = ("--context", f"sandbox-{cluster.spec.name}")
    ran = connectctl(
        *context, "audit", topic, "--sequence", "$.seq", "--html", str(file), "-o", "json"
    )
    assert ran.code == 1, ran.err
    page = shown(file, tmp_path)
    assert ran.json["verdict"] == "duplicates"
    assert "2 duplicates, 4 missing, 0 out of order, 0 torn" in page
    for id_ in {finding["id"] for finding in ran.json["findings"]}:
        assert " ".join(rule_docs()[id_].text.split("\n\n")[0].split()) in page
