"""A hook of mkdocs: files of the repository outside ``docs/`` that its pages link to are part of
the site.

README.md is the first page, and other Markdown files at the root are pages. Any other linked file
outside ``docs/`` is copied under its path. Links keep the form that works in the repository; a link
to a file that does not exist is left as it is, so that ``mkdocs build --strict`` reports it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
FIRST = "README.md"
PAGES = (FIRST, "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_DOCS = "docs/"
_FILE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s#]+)")


def _in_site(path: str) -> str:
    """Return where the site has a file of the repository, relative to ``docs/``."""
    return "index.md" if path == FIRST else path.removeprefix(_DOCS)


def _in_repository(path: str) -> str:
    """Return the path in the repository of a file of the site."""
    return next((page for page in PAGES if _in_site(page) == path), _DOCS + path)


def _target(page: str, link: str) -> str:
    """Return the path in the repository to which a page of the repository links."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def rewritten(text: str, page: str) -> str:
    """Return the text of a page of the repository with links as they are in the site, and names of
    files above their blocks.
    """
    site = posixpath.dirname(_in_site(page)) or "."

    def link(found: re.Match[str]) -> str:
        target = _target(page, found[1])
        if not (ROOT / target).is_file():
            return found[1]
        return posixpath.relpath(_in_site(target), site)

    return _FILE.sub(r'```\1 title="\2"', _LINK.sub(link, text))


def _linked(files: Files) -> Iterator[str]:
    """Yield the files outside ``docs/`` to which pages link."""
    for path in [_in_repository(file.src_uri) for file in files.documentation_pages()]:
        for link in _LINK.findall((ROOT / path).read_text(encoding="utf-8")):
            target = _target(path, link)
            if not target.startswith(_DOCS) and (ROOT / target).is_file():
                yield target


def on_files(files: Files, config: Any) -> Files:
    """Add the pages at the root, and the files that pages link to."""
    for page in PAGES:
        files.append(File.generated(config, _in_site(page), abs_src_path=str(ROOT / page)))
    for path in sorted({*_linked(files)} - {*PAGES}):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return rewritten(markdown, _in_repository(page.file.src_uri))
