# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The sections of the page, each from results alone."""

from __future__ import annotations

from warifu.compare.comparison import STATISTICS, CaseComparison, Comparison
from warifu.compare.gates import RULE
from warifu.report import accuracy, accuracy_details, markup, stages, summaries, tables
from warifu.report import inputs as inputs_room
from warifu.report.answer_section import deadlines
from warifu.report.charts import Band, cdf
from warifu.report.content import Content
from warifu.report.figures import count
from warifu.report.verdicts import validation
from warifu.results import MEASURED, PREDICTED


def distributions(content: Content) -> str:
    """Both halves' distribution functions, case by case."""
    shown = content.shown_cases()
    verdicts = {
        case.case_id: case for case in (content.comparison.cases if content.comparison else [])
    }
    figures = []
    bounds = deadlines(content.judged, content.main.half)
    for index, case_id in enumerate(shown):
        label, whole = content.main.label(case_id), content.main.whole(case_id)
        ours, theirs = (
            None if half is None or case_id not in half.cases else half.distribution(case_id, whole)
            for half in (content.predicted, content.measured)
        )
        found = verdicts.get(case_id)
        bands = _gates(found) if found is not None else []
        picture = cdf(label, ours, theirs, f"c{index}", bands, bounds)
        mark = markup.badge(str(found.verdict)) if found is not None and found.verdict else ""
        n = " and ".join(count(one.n) for one in (ours, theirs) if one is not None)
        if picture.is_stretched:
            n += "; stretched"
        figures.append(
            f"<figure><figcaption>{markup.text(label or 'the only case')}"
            f'<span class="quiet">{mark} n {n}</span></figcaption>{picture.svg}</figure>'
        )
    half = " beside ".join(one.half for one in content.halves).capitalize()
    intro = (
        "Share of connections that had their response by then, counted from the client's first "
        "call. Each picture has its own time axis, which ends at the later P99. Where the tail is "
        "long the picture is stretched up to P99.9: time is logarithmic, and every tenfold fewer "
        "connections still waiting take the same height. n counts "
        f"{' and '.join(one.half for one in content.halves)} connections."
    )
    if len(shown) < len(content.main.cases):
        which = "that miss their gates most" if content.comparison else "spread over the study"
        intro += f" Shown are {len(shown)} of {len(content.main.cases)} cases, those {which}."
    body = (
        f'{markup.paragraph(intro)}{_cdf_legend(content)}<div class="cdfs">{"".join(figures)}</div>'
    )
    return markup.section("distributions", f"{half}: time to the response", body)


def _cdf_legend(content: Content) -> str:
    def item(style: str, name: str) -> str:
        line = f'<line x1="1" y1="7" x2="37" y2="7" {style}/>'
        return f'<li><svg width="38" height="14" aria-hidden="true">{line}</svg>{name}</li>'

    items = ""
    if content.predicted is not None:
        items += item('stroke="var(--predicted)" stroke-width="3.5"', "predicted (thick, solid)")
    if content.measured is not None:
        items += item(
            'stroke="var(--measured)" stroke-width="1.75" stroke-dasharray="5 3"',
            "measured (thin, dashed)",
        )
    if content.comparison is not None:
        items += (
            '<li><svg width="38" height="14" aria-hidden="true"><rect class="gate" x="1" y="2" '
            'width="36" height="10"/></svg>gate: where the prediction is to cross</li>'
        )
    if deadlines(content.judged, content.main.half):
        items += item('stroke="var(--fail)" stroke-width="1.6" stroke-dasharray="2 3"', "deadline")
    return f'<ul class="legend">{items}</ul>'


def _gates(case: CaseComparison) -> list[Band]:
    """Around each judged quantile of the measurement, how far off the prediction may be."""
    shares = {name: share for name, share in STATISTICS.items() if share is not None}
    return [
        Band(shares[row.statistic], row.measured - row.width, row.measured + row.width)
        for row in case.rows
        if row.metric == case.metric and row.statistic in shares and row.width
    ]


def where_time_goes(content: Content) -> str:
    """The waterfall: mean of each stage, and of the slowest trials."""
    if content.predicted is None:
        return ""
    shown = content.shown_cases()
    mean = stages.waterfall(content.predicted, shown, slowest=False)
    if not mean:
        return ""
    slow = stages.waterfall(content.predicted, shown, slowest=True)
    body = (
        markup.paragraph(
            "Predicted mean of each stage. Every nanosecond of the critical path belongs to "
            "exactly one stage, so the parts add up to the mean; what overlaps is not counted "
            "twice."
        )
        + stages.legend(stages.used_stages(content.predicted, shown))
        + mean
        + "".join(map(markup.paragraph, inputs_room.delays(content.predicted.manifest)))
        + markup.folded("The same for the slowest hundredth of the trials: the tail", slow)
    )
    return markup.section("stages", "Where the time goes", body)


def errors(content: Content) -> str:
    """How far apart the halves are, the worst first."""
    comparison = content.comparison
    lead = "".join(map(markup.paragraph, validation(content)))
    if comparison is None:
        return markup.section("validation", "How far to believe this", lead)
    judged = accuracy.comparison_table(comparison, worst_first=True, judged_only=True)
    every = accuracy.comparison_table(comparison)
    notes = list(accuracy.special_notes(comparison))
    failed = [case for case in comparison.cases if case.failed_measured or case.failed_predicted]
    overview = accuracy.overview_table(comparison)
    body = (
        lead
        + _two_errors(comparison)
        + markup.table(overview, "Predicted minus measured in percent of measured (95 % interval).")
        + "<h3>Every judged figure, the worst first</h3>"
        + markup.table(
            judged, "Times in ms; difference is predicted minus measured.", tables.PAGE_ROWS
        )
        + _conditions(comparison)
        + markup.paragraph(RULE)
        + (markup.bullets(notes) if notes else "")
        + (markup.paragraph(f"Cases with failed connections: {len(failed)}.") if failed else "")
        + markup.folded(
            "Every figure, judged or not, by case",
            markup.table(every, "All statistics of the whole time.", tables.PAGE_ROWS),
        )
        + _by_phase(comparison)
        + markup.folded(
            "Distance of whole distributions",
            markup.table(
                accuracy_details.distance_table(comparison),
                "A perfect prediction stays below `by chance below` in 95 % of such runs.",
            ),
        )
    )
    return markup.section("validation", "How far to believe this", body)


def _conditions(comparison: Comparison) -> str:
    """Null models beside the prediction, and how the cells were measured."""
    nulls = accuracy_details.null_table(comparison)
    shown = ""
    if nulls.cells:
        caption = "A prediction without a simulator beside ours; errors in ms."
        shown = markup.table(nulls, caption, tables.PAGE_ROWS) + markup.bullets(nulls.notes)
    how = accuracy_details.conditions_table(comparison)
    return shown + markup.folded(
        "How each cell was measured",
        markup.table(how, "Parts, rejections, other work.") + markup.bullets(how.notes),
    )


def _by_phase(comparison: Comparison) -> str:
    """Empty where no case has phases."""
    if not any(case.phases for case in comparison.cases):
        return ""
    table = accuracy_details.phase_table(comparison)
    return markup.folded(
        "By phase: where the difference comes from",
        markup.table(table, "Mean difference in ms (95 % interval)."),
    )


def _two_errors(comparison: Comparison) -> str:
    engine = f"{accuracy.verdict_sentence(comparison)} {accuracy.gates_sentence(comparison)}"
    return (
        '<div class="error-kinds"><div><h3>Engine error</h3><p>'
        "Prediction against real programs and the running kernel over the emulated link: "
        f"{markup.text(engine)}</p></div><div><h3>Field error</h3><p>None yet: nothing here was "
        "held against a real card, board or network. The two errors are never added up.</p>"
        "</div></div>"
    )


def case_tables(content: Content) -> str:
    """Every case in figures."""
    captions = {
        PREDICTED: "Predicted. Times in ms from the client's first call to the response.",
        MEASURED: "Measured on real software over the emulated link, times in ms.",
    }
    made = [(half.half, summaries.half_table(half, tables.PAGE_ROWS)) for half in content.halves]
    parts = [markup.table(table, captions[half]) for half, table in made]
    # The prediction's notes say what the measurement's do, and more.
    body = f"{''.join(parts)}{markup.bullets(made[0][1].notes)}"
    return markup.section("cases", "Every case in figures", body)


def inputs(content: Content) -> str:
    """Kind and source of every figure that went in."""
    if content.predicted is None:
        return ""
    table = inputs_room.inputs_table(content.predicted.manifest)
    if not table.cells:
        return ""
    tally = inputs_room.tally(content.predicted.manifest)
    intro = (
        f"{len(table.cells)} figures: {tally}. A result rests on the weakest evidence among its "
        "inputs; assumed figures have no source."
    )
    origins = inputs_room.origins(content.predicted.manifest)
    body = "".join(map(markup.paragraph, [intro, *origins])) + markup.table(
        table, "The weakest kinds first.", tables.PAGE_ROWS
    )
    return markup.section("inputs", "What went in", body)


def link(content: Content) -> str:
    """How well the emulated link kept its promise."""
    if content.measured is None or not content.measured.manifest.get("link_reports"):
        return ""
    table = tables.link_table(content.measured)
    body = markup.paragraph(" ".join(table.notes)) + markup.table(
        table, "The link's own report on each cell, worst window of each."
    )
    return markup.section("link", "How late the emulated link was", body)
