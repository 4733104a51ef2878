# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Single connections as they happened: a typical one of a case, and one at its P99."""

from __future__ import annotations

from warifu.report import markup
from warifu.report.content import Content
from warifu.report.figures import number
from warifu.report.timeline import HATCHES, picture
from warifu.report.timeline_labels import duration_ms, lines
from warifu.results import Results, Timeline

#: What the lanes' colours and hatching, and the lines between them, are.
_LEGEND = (
    ("client_compute", "device computes"),
    ("client_system", "its operating system"),
    ("server_compute", "server computes"),
    ("server_system", "its operating system"),
    ("key_store", "key store"),
    ("waits", "waits"),
)
_LINES = (
    ("tp", "packet with a message"),
    ("tp tk", "packet without"),
    ("tp tr", "sent again"),
    ("tp tl", "lost"),
)


def timeline_section(content: Content) -> str:
    """The connections that the prediction kept; empty where it has none."""
    found, results = content.timelines, content.predicted
    if found is None or results is None or not found.timelines:
        return ""
    parts: list[str] = []
    for case_id in results.cases:
        of_case = found.of(case_id)
        if not of_case:
            continue
        figures = "".join(_figure(results, one) for one in of_case)
        body = f'<div class="timelines">{figures}</div>'
        label = results.label(case_id) or "the only case"
        # The first is open: the others only make the page long.
        open_ = " open" if not parts else ""
        head = f"<summary>{markup.flowing(label)}</summary>"
        parts.append(f'<details class="case"{open_}>{head}{body}</details>')
    intro = (
        "A typical connection of each case (its P50) and a slow one (its P99), each simulated once "
        "more with its own seed and with what happens written down. Time runs downwards; "
        "each picture has its own scale, from which long silence is cut out. What takes 1 % of the "
        f"time or more has words; the rest has them where one points at it. Shown: {found.which}."
    )
    items = "".join(f'<li><i class="{key}"></i>{name}</li>' for key, name in _LEGEND)
    items += "".join(
        f'<li><svg class="timeline" width="30" height="12" aria-hidden="true"><line class="{key}" '
        f'x1="1" y1="6" x2="29" y2="6"/></svg>{name}</li>'
        for key, name in _LINES
    )
    body = f'{HATCHES}{markup.paragraph(intro)}<ul class="legend">{items}</ul>{"".join(parts)}'
    return markup.section("timelines", "What happens on a connection", body)


def _figure(results: Results, one: Timeline) -> str:
    settings = results.cases[one.case_id]
    ends = (str(settings.get("device") or "device"), str(settings.get("server") or "server"))
    name = f"P{number(one.quantile * 100, 1).removesuffix('.0')}"
    kind = "a typical connection" if one.quantile == 0.5 else "a slow connection"
    title = f"{name}: {kind}, {duration_ms(one.total_ns)}"
    left = f"; {one.left_out} entries are left out" if one.left_out else ""
    return (
        f"<figure><figcaption>{markup.text(title)}"
        f'<span class="quiet">trial {one.trial}, seed {one.seed}{left}</span></figcaption>'
        f"{picture(one, title, ends)}{_as_text(one)}</figure>"
    )


def _as_text(one: Timeline) -> str:
    words = "\n".join(lines(one))
    return markup.folded("As text", f"<pre>{markup.text(words)}</pre>")
