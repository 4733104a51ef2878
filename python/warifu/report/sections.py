# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The sections of the page, each from results alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warifu.compare.gates import RULE, Verdict
from warifu.compare.join import Comparison
from warifu.compare.require import Judged
from warifu.report import inputs as inputs_room
from warifu.report import markup, stages, summaries, tables
from warifu.report.charts import cdf
from warifu.report.figures import count
from warifu.report.requirements import nearest_to_failing, requirement_table
from warifu.results import KINDS, MEASURED, PREDICTED, Results, interruptions, weakest

#: A page shows this many cases as pictures; more cannot be told apart by eye.
PICTURES = 24


@dataclass(frozen=True)
class Content:
    """What a page is made from: at least one half."""

    predicted: Results | None
    measured: Results | None
    comparison: Comparison | None
    judged: Sequence[Judged]
    #: Whether there is a measurement that was not compared with this prediction.
    left_out: bool = False
    #: How Warifu is called on this machine.
    program: str = "warifu"

    @property
    def halves(self) -> list[Results]:
        """The halves that there are, the prediction first."""
        return [half for half in (self.predicted, self.measured) if half is not None]

    @property
    def main(self) -> Results:
        """The half that the page is about: the prediction, or the measurement where there is none
        yet."""
        return self.halves[0]

    @property
    def evidence(self) -> str:
        """The weakest evidence that any figure here rests on."""
        return weakest([str(one) for one in self.main.manifest.get("evidence") or []])

    def shown_cases(self) -> list[str]:
        """The cases worth a picture: all, or the worst, or a spread from fast to slow."""
        cases = list(self.main.cases)
        if len(cases) <= PICTURES:
            return cases
        if self.comparison is not None:
            ranked = sorted(
                self.comparison.cases,
                key=lambda case: max(summaries.badness(case, row) for row in case.rows),
                reverse=True,
            )
            return [case.case_id for case in ranked[:PICTURES]]
        step = (len(cases) - 1) / (PICTURES - 1)
        # In the order of the study, whose first and last cases are its corners.
        return [cases[round(index * step)] for index in range(PICTURES)]


def verdict(content: Content) -> str:
    """The answer first; before it what was cut short."""
    sentences = [*interruptions(*content.halves), *_requirement_sentences(content)]
    if content.predicted is None:
        sentences.append(
            "Nothing was predicted yet: these are measured figures alone. "
            f"Run `{_command(content, 'predict')}` to see how close a prediction comes."
        )
    elif content.comparison is not None:
        sentences.append(_engine_sentence(content.comparison))
        sentences += [f"Warning: {warning}." for warning in content.comparison.warnings]
    else:
        why = "Nothing was measured"
        if content.left_out:
            why = "The measurement that is there was not compared with this prediction"
        sentences.append(
            f"{why}, so nothing here says how close the prediction is. "
            f"Run `{_command(content, 'run')}` where network namespaces can be made to change that."
        )
    lead = "".join(f'<p class="lead">{markup.prose(sentence)}</p>' for sentence in sentences)
    return lead + _facts(content)


def _requirement_sentences(content: Content) -> list[str]:
    judged = content.judged
    sentences = []
    for requirement in dict.fromkeys(one.requirement.text for one in judged):
        of_both = [one for one in judged if one.requirement.text == requirement]
        group = [one for one in of_both if one.half == content.main.half]
        measured = [one for one in of_both if one.half == MEASURED]
        if not group:
            continue
        words = _of_cases(requirement, group)
        if content.predicted is not None:
            words += f" This rests on {weakest([one.evidence for one in group])} inputs."
            words += _of_measurement(group, measured)
        sentences.append(words)
    if sentences:
        sentences += inputs_room.delays(content.main.manifest)
    return sentences


def _of_measurement(predicted: Sequence[Judged], measured: Sequence[Judged]) -> str:
    """What the measurement says of predicted verdicts on a requirement, case by case.

    It contradicts one only by a verdict of its own: an undecided one leaves it as it was.
    """
    verdicts = {one.case_id: one.verdict for one in predicted}
    both = [(verdicts[one.case_id], one.verdict) for one in measured if one.case_id in verdicts]
    undecided = Verdict.UNDECIDED
    against = sum(undecided not in pair and pair[0] is not pair[1] for pair in both)
    words = f" The measurement contradicts it in {_cases(against)}." if against else ""
    for verdict, what in ((Verdict.PASS, "holds"), (Verdict.FAIL, "fails")):
        if settled := both.count((undecided, verdict)):
            words += f" Predicted as undecided, it {what} in {_cases(settled)} as measured."
    if open_ones := sum(pair[1] is undecided for pair in both):
        words += f" It is undecided by the measurement in {_cases(open_ones)}."
    return words


def _cases(number: int) -> str:
    return "1 case" if number == 1 else f"{number} cases"


def _of_cases(requirement: str, group: Sequence[Judged]) -> str:
    """In how many cases of a half a requirement holds, fails and is undecided; the worst is that of
    the table of requirements."""
    every = len(group)
    words = []
    for verdict, what in (
        (Verdict.PASS, "holds in"),
        (Verdict.FAIL, "fails in"),
        (Verdict.UNDECIDED, "is undecided in"),
    ):
        count_of = sum(one.verdict is verdict for one in group)
        if count_of == every:
            cases = "the only case" if every == 1 else f"all {every} cases"
            words.append(f"{what} {cases}")
        elif count_of:
            words.append(f"{what} {count_of} of {every} cases")
    sentence = f"{requirement} {', '.join(words)}, as {group[0].half}"
    least = nearest_to_failing(group)
    if least.verdict is not Verdict.PASS and every > 1:
        sentence += f"; the worst is {least.label}"
    return sentence + (f": {least.remark}." if least.remark else ".")


def _engine_sentence(comparison: Comparison) -> str:
    judged = [case for case in comparison.cases if case.verdict is not None]
    passing, failing, open_ones = (
        comparison.count(one) for one in (Verdict.PASS, Verdict.FAIL, Verdict.UNDECIDED)
    )
    every = len(comparison.cases)
    if not judged:
        return f"No gate says anything of the {_cases(every)} measured."
    of = f"{len(judged)} judged case{'s' if len(judged) > 1 else ''} ({every} measured)"
    if passing == len(judged):
        return f"The prediction is within every gate in {'all ' * (passing > 1)}{of}."
    words = [f"Of {of} the prediction is within its gates in {passing}"]
    if failing:
        words.append(f"outside in {failing}")
    if open_ones:
        words.append(f"undecided in {open_ones}: too few trials")
    return ", ".join(words) + "."


def _facts(content: Content) -> str:
    facts = [(count(len(content.main.cases)), "cases")]
    if content.predicted is not None:
        trials = content.predicted.manifest.get("predict_trials")
        if trials:
            facts.append((count(float(trials)), "simulated trials a case"))
    if content.comparison is not None:
        least = min(case.n_measured for case in content.comparison.cases)
        most = max(case.n_measured for case in content.comparison.cases)
        shown = count(least) if least == most else f"{count(least)} to {count(most)}"
        facts.append((shown, "measured connections a case"))
        failed = sum(case.failed_measured for case in content.comparison.cases)
        facts.append((count(failed), "measured connections failed"))
    items = [f"<li><b>{markup.text(value)}</b><span>{name}</span></li>" for value, name in facts]
    items.append(f"<li><b>{markup.badge(content.evidence)}</b><span>weakest input</span></li>")
    return f'<ul class="facts">{"".join(items)}</ul>'


def requirements(content: Content) -> str:
    """`[require]` with verdicts; empty without any."""
    if not content.judged:
        return ""
    predicted = None if content.predicted is None else content.predicted.manifest
    table = requirement_table(content.judged, predicted)
    caption = "Each bound on every case, judged by the 95 % interval; the nearest to failing."
    return "<h2>Requirements</h2>" + markup.table(table, caption) + markup.bullets(table.notes)


def distributions(content: Content) -> str:
    """Both halves' distribution functions, case by case."""
    shown = content.shown_cases()
    verdicts = {
        case.case_id: case for case in (content.comparison.cases if content.comparison else [])
    }
    figures = []
    for index, case_id in enumerate(shown):
        label, whole = content.main.label(case_id), content.main.whole(case_id)
        ours, theirs = (
            None if half is None or case_id not in half.cases else half.distribution(case_id, whole)
            for half in (content.predicted, content.measured)
        )
        picture = cdf(label, ours, theirs, f"c{index}")
        found = verdicts.get(case_id)
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
    return (
        f"<h2>{half}: time to the response</h2>{markup.paragraph(intro)}"
        f'{_cdf_legend(content)}<div class="cdfs">{"".join(figures)}</div>'
    )


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
    return f'<ul class="legend">{items}</ul>'


def where_time_goes(content: Content) -> str:
    """The waterfall: mean of each stage, and of the slowest trials."""
    if content.predicted is None:
        return ""
    shown = content.shown_cases()
    mean = stages.waterfall(content.predicted, shown, slowest=False)
    if not mean:
        return ""
    slow = stages.waterfall(content.predicted, shown, slowest=True)
    return (
        "<h2>Where the time goes</h2>"
        + markup.paragraph(
            "Predicted mean of each stage. Every nanosecond of the critical path belongs to "
            "exactly one stage, so the parts add up to the mean; what overlaps is not counted "
            "twice."
        )
        + stages.legend(stages.used_stages(content.predicted, shown))
        + mean
        + "".join(map(markup.paragraph, inputs_room.delays(content.predicted.manifest)))
        + markup.folded("The same for the slowest hundredth of the trials: the tail", slow)
    )


def errors(content: Content) -> str:
    """How far apart the halves are, the worst first."""
    comparison = content.comparison
    if comparison is None:
        return ""
    judged = summaries.comparison_table(comparison, worst_first=True, judged_only=True)
    every = summaries.comparison_table(comparison)
    notes = list(summaries.special_notes(comparison))
    failed = [case for case in comparison.cases if case.failed_measured or case.failed_predicted]
    overview = summaries.overview_table(comparison)
    return (
        "<h2>How far apart the halves are</h2>"
        + _two_errors(comparison)
        + markup.table(overview, "Predicted minus measured in percent of measured (95 % interval).")
        + "<h3>Every judged figure, the worst first</h3>"
        + markup.table(
            judged, "Times in ms; difference is predicted minus measured.", tables.PAGE_ROWS
        )
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
                summaries.distance_table(comparison),
                "A perfect prediction stays below `by chance below` in 95 % of such runs.",
            ),
        )
    )


def _by_phase(comparison: Comparison) -> str:
    """Empty where no case has phases."""
    if not any(case.phases for case in comparison.cases):
        return ""
    table = summaries.phase_table(comparison)
    return markup.folded(
        "By phase: where the difference comes from",
        markup.table(table, "Mean difference in ms (95 % interval)."),
    )


def _two_errors(comparison: Comparison) -> str:
    engine = summaries.verdict_sentence(comparison)
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
    return f"<h2>Every case in figures</h2>{''.join(parts)}{markup.bullets(made[0][1].notes)}"


def inputs(content: Content) -> str:
    """Kind and source of every figure that went in."""
    if content.predicted is None:
        return ""
    table = inputs_room.inputs_table(content.predicted.manifest)
    if not table.cells:
        return ""
    kinds = [row[2] for row in table.cells]
    tally = ", ".join(f"{kinds.count(kind)} {kind}" for kind in KINDS if kind in kinds)
    intro = (
        f"{len(kinds)} figures: {tally}. A result rests on the weakest evidence among its inputs; "
        "assumed figures have no source."
    )
    return (
        "<h2>What went in</h2>"
        + markup.paragraph(intro)
        + markup.table(table, "The weakest kinds first.", tables.PAGE_ROWS)
    )


def link(content: Content) -> str:
    """How well the emulated link kept its promise."""
    if content.measured is None or not content.measured.manifest.get("link_reports"):
        return ""
    table = tables.link_table(content.measured)
    return (
        "<h2>How late the emulated link was</h2>"
        + markup.paragraph(" ".join(table.notes))
        + markup.table(table, "The link's own report on each cell, worst window of each.")
    )


def provenance(content: Content) -> str:
    """Machine, versions, runs, and how to repeat them."""
    blocks = []
    for half in content.halves:
        rows = markup.definitions(_provenance(half.manifest))
        blocks.append(f"<div><h3>{half.half.capitalize()}</h3>{rows}</div>")
    study = content.main.manifest.get("study", {})
    commit = content.main.manifest.get("commit")
    before = f"git checkout {commit}\n" if commit else ""
    verb = "run" if len(content.halves) == 2 else "predict" if content.predicted else "measure"
    seed = content.main.manifest.get("seed")
    command = f"{before}{_command(content, verb)}    # seed {seed}"
    return (
        f'<h2>How to repeat this</h2><pre>{markup.text(command)}</pre><div class="columns">'
        + "".join(blocks)
        + "</div>"
        + markup.folded(
            "The study as it was run", f"<pre>{markup.text(study.get('text', ''))}</pre>"
        )
    )


def _command(content: Content, verb: str) -> str:
    """The command line that runs this study with a verb; what measures needs root."""
    manifest = content.main.manifest
    before = "" if verb == "predict" else "sudo "
    sets = "".join(f' --set {path}="{value}"' for path, value in manifest["study"]["overrides"])
    file = manifest["study"]["file"] or "study.toml"
    name = "" if file == "command line" else f" {file}"
    return f"{before}{content.program} {verb}{name}{sets}"


def _provenance(manifest: dict[str, Any]) -> dict[str, object]:
    machine = manifest.get("machine") or {}
    tcp = machine.get("tcp") or {}
    tools = manifest.get("tools") or {}
    dirty = " with changes" if manifest.get("dirty") else ""
    return {
        "run": manifest.get("run_id"),
        "began": manifest.get("started"),
        "ended": manifest.get("finished") or "not finished",
        "complete": "yes" if manifest.get("complete") else "no: some cases or trials are missing",
        "commit": f"{manifest.get('commit')}{dirty}" if manifest.get("commit") else "",
        "seed": manifest.get("seed"),
        "study SHA-256": manifest.get("study", {}).get("sha256"),
        "calibrated by": ", ".join(manifest.get("calibration_run_ids") or []),
        **{str(name): value for name, value in machine.items() if name != "tcp"},
        "TCP settings": ", ".join(f"{name} = {value}" for name, value in tcp.items()),
        # The namespace's default is not what the connections used: their routes pin it.
        "pinned by route": "; ".join(_routes(manifest)),
        **{str(name): value for name, value in tools.items()},
        "warnings": "; ".join(manifest.get("warnings") or []),
        "skipped": "; ".join(f"{k}: {v}" for k, v in (manifest.get("skipped") or {}).items()),
    }


def _routes(manifest: dict[str, Any]) -> list[str]:
    """What the routes of the measured cells pin, whatever the settings above say."""
    routes = [
        part.get("route") or {}
        for cell in (manifest.get("cells") or {}).values()
        for part in cell.get("parts") or []
    ]
    lines = [", ".join(f"{name} = {value}" for name, value in one.items()) for one in routes]
    return list(dict.fromkeys(line for line in lines if line))


def limits(content: Content) -> str:
    """What the result does not say."""
    items = []
    if content.predicted is None:
        items.append("There is no prediction, so nothing here says how close one comes.")
    if content.measured is None:
        items.append(
            "These simulated figures were not compared with a measurement: their error is unknown."
        )
    else:
        items.append(
            "Only the emulated link was between the two ends: no radio, no operator's network, no "
            "middlebox. Field error is unknown."
        )
        items.append(
            "Both ends ran on one machine: a device's own processor is represented by its profile "
            "alone."
        )
    items.append("Energy and memory are not predicted here, nor how a server behaves under load.")
    if content.evidence == "assumed":
        where = "see the table of inputs first."
        if not content.main.manifest["figures"]:
            where = (
                "a study of so many cases lists no inputs; predict one of its cases alone, and its "
                "report says which."
            )
        items.insert(0, f"Some inputs are assumed, without a source: {where}")
    comparison = content.comparison
    if comparison is not None and comparison.count(Verdict.UNDECIDED):
        items.append(
            "Undecided is neither good nor bad: the interval is wider than the gate. The table "
            "says about how many trials would decide."
        )
    items += interruptions(*content.halves)
    if skipped := (content.measured.manifest.get("skipped") if content.measured else None):
        items.append(f"{len(skipped)} cases were not measured; the machine table says why.")
    return "<h2>What this does not say</h2>" + markup.bullets(items)
