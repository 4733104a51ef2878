# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Requirements, and how far a prediction is to be believed."""

from __future__ import annotations

from collections.abc import Sequence

from warifu.compare.comparison import Comparison
from warifu.compare.gates import Verdict
from warifu.compare.require import Judged
from warifu.report import inputs as inputs_room
from warifu.report import markup
from warifu.report.content import Content
from warifu.report.figures import count
from warifu.report.provenance import command
from warifu.report.requirements import nearest_to_failing, requirement_table
from warifu.results import MEASURED, weakest


def validation(content: Content) -> list[str]:
    """How far the prediction is to be believed, a sentence each."""
    sentences = []
    if content.predicted is None:
        sentences.append(
            "Nothing was predicted yet: these are measured figures alone. "
            f"Run `{command(content, 'predict')}` to see how close a prediction comes."
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
            f"Run `{command(content, 'run')}` where network namespaces can be made to change that."
        )
    return sentences


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
            cases = {1: "the only case", 2: "both cases"}.get(every, f"all {every} cases")
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
        words.append(f"undecided in {open_ones}, near a gate")
    return ", ".join(words) + "."


def facts(content: Content) -> str:
    """How much the figures are made of, and the weakest of what they rest on."""
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
    evidence = content.evidence
    rests = "assumed values" if evidence == "assumed" else f"{evidence} values"
    items.append(
        f'<li class="rests"><b>{rests}</b><span>the weakest that this rests on</span></li>'
    )
    return f'<ul class="facts">{"".join(items)}</ul>'


def requirements(content: Content) -> str:
    """`[require]` with verdicts; empty without any."""
    if not content.judged:
        return ""
    lead = "".join(map(markup.paragraph, _requirement_sentences(content)))
    predicted = None if content.predicted is None else content.predicted.manifest
    table = requirement_table(content.judged, predicted)
    caption = "Each bound on every case, judged by the 95 % interval; the nearest to failing."
    body = lead + markup.table(table, caption) + markup.bullets(table.notes)
    return markup.section("requirements", "Requirements", body)
