# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Hooks of mkdocs: a folder of docs/ is a section of the site, and pages of the project's own
folder stand beside them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = {
    "Tutorial": "tutorial",
    "How to": "how-to",
    "Reference": "reference",
    "Explanation": "explanation",
}
PROJECT = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")

#: A link from a page of docs/ to one of the project's own folder, and the other way.
_UP = re.compile(rf"\]\(((?:\.\./)*)\.\./({'|'.join(map(re.escape, PROJECT))})([#)])")
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
_DOWN = re.compile(r"\]\(docs/")


def on_config(config: Any) -> Any:  # noqa: ANN401 - of mkdocs
    """The navigation: pages on top, then each section's."""
    docs = Path(config.docs_dir)
    pages = sorted(page.name for page in docs.glob("*.md") if page.name != "index.md")
    config.nav = ["index.md", *(_named(docs, name) for name in pages)]
    for title, folder in SECTIONS.items():
        below = sorted(page.name for page in (docs / folder).glob("*.md"))
        config.nav.append({title: [_named(docs, f"{folder}/{name}") for name in below]})
    config.nav.append({"Project": list(PROJECT)})
    return config


def _named(docs: Path, name: str) -> dict[str, str]:
    """A page by its heading: by itself mkdocs makes a title of the file's name (`Coap`) where a
    comment comes first."""
    text = (docs / name).read_text(encoding="utf-8")
    found = _HEADING.search(text)
    return {found[1]: name} if found else {Path(name).stem: name}


def on_files(files: Files, config: Any) -> Files:  # noqa: ANN401 - of mkdocs
    """Adds the pages of the project's own folder."""
    for name in PROJECT:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Links as they hold on the site, where docs/ and the project's own folder are one."""
    return _DOWN.sub("](", _UP.sub(r"](\1\2\3", markdown))
