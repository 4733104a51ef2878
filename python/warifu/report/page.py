# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The page: one HTML file that needs nothing else, neither network nor script."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from warifu.compare.join import Comparison
from warifu.files import refuse_to_replace, replace_text
from warifu.report import markup, sections, tables
from warifu.report.sections import Content
from warifu.results import halves


class ReportError(Exception):
    """A report that cannot be made; its text is one line that names the fix."""


def write_page(
    folder: Path, comparison: Comparison | None, path: Path, program: str = "warifu"
) -> Path:
    """Writes the page of a study's results to ``path``, whole or not at all.

    ``comparison`` is that of the two halves, if there are two: without it the prediction is
    reported alone, and without a prediction the measurement. ``program`` is how Warifu is called
    here. Raises ReportError without any half, FileRefused where ``path`` is no file, and OSError.
    """
    refuse_to_replace(path)
    page = render(folder, comparison, program)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, page)
    return path


def render(folder: Path, comparison: Comparison | None, program: str = "warifu") -> str:
    """The page as text."""
    predicted, measured = tables.open_halves(folder, comparison)
    if predicted is None and measured is None:
        raise ReportError(f"{folder}: holds no results yet: run `warifu predict` first")
    left_out = comparison is None and halves(folder)[1] is not None
    judged = tables.judge_halves(predicted, measured)
    content = Content(predicted, measured, comparison, judged, left_out, program)
    body = "".join(
        section(content)
        for section in (
            sections.verdict,
            sections.requirements,
            sections.distributions,
            sections.where_time_goes,
            sections.errors,
            sections.case_tables,
            sections.inputs,
            sections.link,
            sections.limits,
            sections.provenance,
        )
    )
    style = resources.files("warifu.report").joinpath("page.css").read_text(encoding="utf-8")
    title = markup.text(content.main.study)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # Nothing may be fetched, and the page says so to the browser as well.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
        f'<meta name="generator" content="warifu">\n<title>{title}: warifu report</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<main>\n<header><h1>{title}</h1>"
        f'<p class="quiet">{_subtitle(content)}</p></header>\n{body}\n</main>\n</body>\n</html>\n'
    )


def _subtitle(content: Content) -> str:
    what = " and ".join(half.half for half in content.halves)
    manifest = content.main.manifest
    ended = manifest.get("finished") or manifest.get("started")
    varies = ", ".join(path for path, _ in manifest.get("vary") or [])
    words = f"What securing the connection costs, {what}. {ended or ''}"
    return markup.text(f"{words}{f'; varies: {varies}' if varies else ''}")
