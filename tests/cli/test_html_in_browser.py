"""Pages in a real browser: what a person sees of them, wide and narrow, in the light, in the dark
and on paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import ABSENT, Browser, browser, executable
from connectctl.cli.views import audit_html, cluster_html
from fakes import pages

pytestmark = pytest.mark.skipif(executable() is None, reason=ABSENT)

WIDTHS = (360, 768, 1280)
OVERLAPPING = """(() => {
  const texts = [...document.querySelectorAll('.axes span, figcaption, .bar svg, caption, dt, dd, h1, h2, h3')]
    .filter(e => e.checkVisibility());
  const boxes = texts.map(e => [e, e.getBoundingClientRect()]).filter(([e, b]) => b.width && b.height);
  const found = [];
  boxes.forEach(([e, a], n) => boxes.slice(n + 1).forEach(([f, b]) => {
    if (!e.contains(f) && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
      found.push(e.textContent + ' / ' + f.textContent);
  }));
  return found;
})()"""
SMALL = """[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && [...e.childNodes].some(
  n => n.nodeType === 3 && n.data.trim())).map(e => [parseFloat(getComputedStyle(e).fontSize), e.textContent])
  .filter(([size]) => size < 11).map(([size, text]) => size + ' ' + text)"""
BEYOND = """(() => {
  const right = document.documentElement.clientWidth, found = [];
  for (const e of document.querySelectorAll('body *')) {
    if (!e.checkVisibility() || e.closest('thead') || e.closest('svg')) continue;
    const scrolls = e.closest('.scroll');
    if ((!scrolls || scrolls === e) && e.getBoundingClientRect().right > right + 0.5) found.push(e.outerHTML.slice(0, 80));
  }
  return found;
})()"""
FAINT = """(() => {
  const rgb = c => (c.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const back = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const found = [];
  for (const e of document.querySelectorAll('body *')) {
    if (!e.checkVisibility() || e.closest('svg')) continue;
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(back(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(e.outerHTML.slice(0, 80));
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    texts = {
        "one slot": audit_html.page(pages.audited(1), pages.ORIGIN),
        "ten thousand slots": audit_html.page(
            pages.audited(10_000, detail=pages.LONG), pages.ORIGIN
        ),
        "long names": audit_html.page(
            pages.audited(3, "t" * 249, "s" * 3000, "d" * 3000), pages.ORIGIN
        ),
        "cluster": cluster_html.page(pages.busy(), pages.ORIGIN),
        "cluster of long names": cluster_html.page(
            pages.cluster(*(pages.connector("c" * 300 + str(n), tasks=12) for n in range(5))),
            pages.ORIGIN,
        ),
        "nothing seen": cluster_html.page(pages.nothing(), pages.ORIGIN),
        "doctor": pages.doctored(),
        "doctor of long names": pages.doctored(2, 30, "c" * 200),
    }
    directory = tmp_path_factory.mktemp("pages")
    found = {name: directory / f"{name}.html" for name in texts}
    for name, text in texts.items():
        found[name].write_text(text, encoding="utf-8")
    return found


PAGES = (
    "one slot",
    "ten thousand slots",
    "long names",
    "cluster",
    "cluster of long names",
    "nothing seen",
    "doctor",
    "doctor of long names",
)


@pytest.mark.drawn(2, each="which")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("which", PAGES)
def test_a_page_is_readable_fits_and_asks_for_nothing(
    which: str, width: int, dark: bool, tab: Browser, files: dict[str, Path], tmp_path: Path
) -> None:
    tab.open(files[which], width=width, dark=dark)
    assert tab.value("document.scrollingElement.scrollWidth <= innerWidth")
    assert tab.value(BEYOND) == []
    assert tab.value(SMALL) == []
    assert tab.value(FAINT) == []
    assert tab.value(OVERLAPPING) == []
    seen = tab.value("getComputedStyle(document.body).backgroundColor")
    assert seen == ("rgb(20, 24, 28)" if dark else "rgb(255, 255, 255)")
    assert tab.screenshot(tmp_path / "page.png", whole=False).startswith(b"\x89PNG")
    assert tab.console == []
    assert tab.asked == [files[which].as_uri()]


@pytest.mark.parametrize("which", PAGES)
def test_every_link_leads_to_a_part_of_the_page_that_is_shown(
    which: str, tab: Browser, files: dict[str, Path]
) -> None:
    tab.open(files[which])
    links = tab.value("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    assert links
    for link in dict.fromkeys(links):
        tab.value(f"location.hash = {link!r}")
        assert tab.value("document.querySelector(':target').checkVisibility()"), link
        assert tab.value(
            "document.querySelector(':target').getBoundingClientRect().top < innerHeight"
        ), link
    assert tab.asked == [files[which].as_uri()]


@pytest.mark.parametrize("which", ["one slot", "ten thousand slots"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_columns_of_a_plot_can_be_told_apart(
    which: str, width: int, tab: Browser, files: dict[str, Path]
) -> None:
    tab.open(files[which], width=width)
    boxes = tab.value(
        "[...document.querySelectorAll('.axes rect')].map(r => r.getBoundingClientRect().toJSON())"
    )
    plots = tab.value(
        "[...document.querySelectorAll('.axes svg')].map(r => r.getBoundingClientRect().toJSON())"
    )
    assert boxes
    assert min(box["width"] for box in boxes) > 1.5
    assert max(box["width"] for box in boxes) <= plots[0]["width"] / 12
    assert min(box["height"] for box in boxes) >= 1.9
    assert all(plot["height"] == 72 for plot in plots)
    assert tab.value(
        "[...document.querySelectorAll('.axes svg')].every(s => "
        "s.querySelector('title').textContent)"
    )


def test_what_is_folded_away_opens_by_the_keyboard_and_is_on_paper(
    tab: Browser, files: dict[str, Path]
) -> None:
    tab.open(files["cluster"])
    task = "document.querySelector('td details li')"
    assert not tab.value(f"{task}.checkVisibility()")
    tab.value("document.querySelector('td summary').focus()")
    for kind in ("keyDown", "keyUp"):
        tab.send(
            "Input.dispatchKeyEvent",
            type=kind,
            key="Enter",
            code="Enter",
            windowsVirtualKeyCode=13,
            text="\r",
        )
    assert tab.value(f"{task}.checkVisibility()")
    tab.open(files["cluster"], width=800, dark=True, paper=True)
    assert tab.value(f"{task}.checkVisibility() && {task}.getBoundingClientRect().height > 5")
    assert tab.value("getComputedStyle(document.body).color") == "rgb(27, 31, 36)", (
        "ink on paper, whatever the screen has"
    )
    assert not tab.value("document.querySelector('nav').checkVisibility()")


def test_the_policy_forbids_a_script_that_somebody_gets_into_a_page(
    tab: Browser, files: dict[str, Path], tmp_path: Path
) -> None:
    spoilt = tmp_path / "spoilt.html"
    bad = (
        "<script>document.title='ran'</script><img src='https://example.com/x.png'><p "
        "style='color:red' id=p>x</p>"
    )
    spoilt.write_text(files["cluster"].read_text().replace("<main>", f"<main>{bad}"))
    tab.open(spoilt)
    assert tab.value("document.title") == "Connect cluster connect-prod"
    assert tab.value("getComputedStyle(document.getElementById('p')).color") != "rgb(255, 0, 0)"
    assert len(tab.console) == 3, "one complaint about each"
