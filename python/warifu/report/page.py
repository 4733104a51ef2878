# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The page: one HTML file that needs nothing else and no network.

A script in it sorts and filters tables and changes the baseline. Everything is readable without,
and the page's own policy lets no other run: it names the script by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from warifu.answer import answer
from warifu.compare.comparison import Comparison
from warifu.files import refuse_to_replace, replace_text
from warifu.report import markup, provenance, sections, tables, verdicts
from warifu.report.answer_section import answer_section
from warifu.report.content import Content
from warifu.report.timeline_section import timeline_section
from warifu.results import Results, Timelines, halves, read_timelines


class ReportError(Exception):
    """A report that cannot be made; its text is one line that names the fix."""


def write_page(
    folder: Path,
    comparison: Comparison | None,
    path: Path,
    program: str = "warifu",
    baseline: str | None = None,
) -> Path:
    """Writes the page of a study's results to ``path``, whole or not at all.

    ``comparison`` is that of the two halves, if there are two: without it the prediction is
    reported alone, and without a prediction the measurement. ``program`` is how Warifu is called
    here; ``baseline`` is the case that the others are held against, the first
    without one. Raises ReportError without any half, FileRefused where ``path`` is no file, and
    OSError.
    """
    refuse_to_replace(path)
    page = render(folder, comparison, program, baseline)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, page)
    return path


def render(
    folder: Path,
    comparison: Comparison | None,
    program: str = "warifu",
    baseline: str | None = None,
) -> str:
    """The page as text."""
    predicted, measured = tables.open_halves(folder, comparison)
    if predicted is None and measured is None:
        raise ReportError(f"{folder}: holds no results yet: run `warifu predict` first")
    left_out = comparison is None and halves(folder)[1] is not None
    judged = tables.judge_halves(predicted, measured)
    content = Content(
        predicted, measured, comparison, judged, left_out, program, _timelines(predicted)
    )
    found = answer(predicted, measured, comparison, judged, baseline)
    # Key, name in the navigation, and content: one without content is left out.
    parts = [(key, name, made) for key, name, make in _SECTIONS if (made := make(content))]
    style, script = (
        resources.files("warifu.report").joinpath(name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js")
    )
    title = markup.text(content.main.study)
    links = "".join(f'<a href="#{key}">{name}</a>' for key, name, _ in parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # Nothing may be fetched, and the page says so to the browser as well.
        '<meta http-equiv="Content-Security-Policy" '
        f"content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src "
        f"'{_hash(script)}'; base-uri 'none'; form-action 'none'\">\n"
        f'<meta name="generator" content="warifu">\n<title>{title}: warifu report</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<header><h1>{title}</h1>"
        f'<p class="quiet">{_subtitle(content)}</p>'
        f'<nav aria-label="Sections"><a href="#answer">Answer</a>{links}</nav></header>\n<main>\n'
        f"{answer_section(content, found)}{verdicts.facts(content)}"
        f"{''.join(made for _, _, made in parts)}\n</main>\n<script>{script}</script>\n"
        "</body>\n</html>\n"
    )


_SECTIONS: tuple[tuple[str, str, Callable[[Content], str]], ...] = (
    ("timelines", "Timelines", timeline_section),
    ("stages", "Where time goes", sections.where_time_goes),
    ("distributions", "Distributions", sections.distributions),
    ("requirements", "Requirements", verdicts.requirements),
    ("validation", "Validation", sections.errors),
    ("cases", "Cases", sections.case_tables),
    ("inputs", "Inputs", sections.inputs),
    ("link", "Link", sections.link),
    ("limits", "Limits", provenance.limits),
    ("repeat", "Repeat", provenance.provenance),
)


def _hash(script: str) -> str:
    """What the page's policy knows its script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _timelines(predicted: Results | None) -> Timelines | None:
    return None if predicted is None else read_timelines(predicted.path, predicted.manifest)


def _subtitle(content: Content) -> str:
    what = " and ".join(half.half for half in content.halves)
    manifest = content.main.manifest
    ended = manifest.get("finished") or manifest.get("started")
    varies = ", ".join(path for path, _ in manifest.get("vary") or [])
    words = f"What securing the connection costs, {what}. {ended or ''}"
    return markup.text(f"{words}{f'; varies: {varies}' if varies else ''}")
