# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Pages, and what of the tree names them: every link and every path leads somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.paths import ROOT

DOCS = ROOT / "docs"
SECTIONS = ("tutorial", "how-to", "reference", "explanation")
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
#: A page's path, as code, messages and comments say it.
_NAMED = re.compile(r"\bdocs/[\w/-]+\.md\b")


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub and the site make them."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    for link in _LINK.findall(text):
        if re.match(r"https?:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.relative_to(ROOT)}: {link}: no such file"
        if anchor:
            assert anchor in anchors(target), f"{page.relative_to(ROOT)}: {link}: no such heading"


def test_every_page_that_the_tree_names_is_there() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    missing = []
    for name in listed.stdout.splitlines():
        file = ROOT / name
        if name.startswith("vectors/") or not file.is_file():
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        missing += [
            f"{name}: {page}" for page in _NAMED.findall(text) if not (ROOT / page).exists()
        ]
    assert missing == []


def test_every_page_has_one_of_four_purposes() -> None:
    """Diátaxis: to learn, to do, to look up, to understand. Only the start and the questions, which
    lead to all of them, stand beside these."""
    folders = {page.relative_to(DOCS).parts[0] for page in DOCS.rglob("*.md")}
    assert folders - {"index.md", "questions.md"} == set(SECTIONS)


def test_the_start_leads_to_every_section() -> None:
    start = (DOCS / "index.md").read_text(encoding="utf-8")
    assert [name for name in SECTIONS if f"]({name}/" not in start] == []
