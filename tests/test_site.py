"""The site of the documentation: it is built without a warning, and loads nothing from other
hosts.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import ABSENT, browser, executable
from documentation import PAGES, ROOT, name

LOADED = {
    **dict.fromkeys(("script", "img", "iframe", "source", "video", "audio", "embed"), "src"),
    "link": "href",
    "object": "data",
}
"""The attribute of an element that a browser fetches without a click."""


class Page(HTMLParser):
    """Collects the addresses that a browser fetches to show a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for key, value in attrs if LOADED.get(tag) == key]


def foreign(addresses: list[str]) -> list[str]:
    return [address for address in addresses if re.match(r"(\w+:)?//", address)]


def build(tree: Path, to: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(to)],
        cwd=tree,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this tree, built as `.ci/run` builds it."""
    to = tmp_path_factory.mktemp("site")
    done = build(ROOT, to)
    assert done.returncode == 0, done.stderr
    return to


def test_every_page_of_the_documentation_is_on_the_site(site: Path) -> None:
    def built(page: Path) -> Path:
        path = name(page).removeprefix("docs/").removesuffix(".md").removesuffix("README")
        return site / path / "index.html"

    assert [name(page) for page in PAGES if not built(page).exists()] == []


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    loaded = {page: Page(page.read_text()).loaded for page in pages}
    assert min(map(len, loaded.values())) > 3
    assert {
        page: foreign(addresses) for page, addresses in loaded.items() if foreign(addresses)
    } == {}
    for style in site.rglob("*.css"):
        assert foreign(re.findall(r"(?:url\(|@import )[\"']?([^\"')]+)", style.read_text())) == []


@pytest.mark.skipif(executable() is None, reason=ABSENT)
def test_a_browser_that_shows_a_page_asks_no_other_host(site: Path, tmp_path: Path) -> None:
    with browser(tmp_path) as tab:
        tab.open(site / "index.html")
        asked = list(tab.asked)
        width = tab.value("document.querySelector('img[src$=\".svg\"]').naturalWidth")
    assert {Path(address).suffix for address in asked} >= {".html", ".css", ".js", ".svg"}
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []
    assert width > 0


def test_an_address_of_another_host_is_found() -> None:
    page = Page(
        '<a href="https://a.example/"></a><link rel=icon href="//b.example/i.png"><img src=c.png>'
    )
    assert (page.loaded, foreign(page.loaded)) == (
        ["//b.example/i.png", "c.png"],
        ["//b.example/i.png"],
    )


@pytest.mark.parametrize(
    ("link", "told"),
    [
        ("[there](page.md#first-heading), [code](../code.py), [home](../README.md)", ""),
        ("[gone](nothing.md)", "a link 'nothing.md'"),
        ("[gone](../nothing.py)", "a link '../nothing.py'"),
        ("[gone](page.md#no-heading)", "no such anchor"),
        ("[a folder](site)", "'site'"),
    ],
)
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path, link: str, told: str) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs/site", docs / "site")
    settings, _, _ = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")
    (tmp_path / "mkdocs.yml").write_text(settings)
    for page in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"):
        (tmp_path / page).write_text("# Page\n\n[A page](docs/page.md)\n")
    (tmp_path / "code.py").write_text("")
    (docs / "page.md").write_text(f"# Page\n\n## First heading\n\n{link}\n")
    done = build(tmp_path, tmp_path / "site")
    assert (done.returncode != 0) == bool(told), done.stderr
    assert told in done.stderr
