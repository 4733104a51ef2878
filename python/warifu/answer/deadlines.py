# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The study's requirements, by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warifu.answer.model import MET, MISSED, UNDECIDED
from warifu.compare.gates import Verdict
from warifu.compare.require import Judged, depends_on_boards
from warifu.results import PREDICTED

_WORDS = {Verdict.PASS: MET, Verdict.FAIL: MISSED, Verdict.UNDECIDED: UNDECIDED}
#: So many cases are named, of more their number is told.
_NAMED = 3


def of_cases(judged: Sequence[Judged]) -> dict[str, str]:
    """By case the worst of its requirements.

    A measurement adds what it is sure of: it is often too small to be sure of a tail, and that
    alone contradicts no prediction.
    """
    found: dict[str, str] = {}
    predicted = any(one.half == PREDICTED for one in judged)
    for one in judged:
        word = _WORDS[one.verdict]
        if predicted and one.half != PREDICTED and word != MISSED:
            continue
        found[one.case_id] = max(found.get(one.case_id, word), word, key=_ORDER.index)
    return found


_ORDER = [MET, UNDECIDED, MISSED]


def sentences(
    judged: Sequence[Judged],
    without: Sequence[str] = (),
    all_labels: Mapping[str, str] | None = None,
) -> list[str]:
    """A sentence for each requirement: in which cases it is met, missed and undecided, and in which
    it is not judged: ``without`` are the labels of those that are not predicted, ``all_labels``
    those of all that are, by case id, of which some may not have what is required."""
    found = []
    for text in dict.fromkeys(one.requirement.text for one in judged):
        group = [one for one in judged if one.requirement.text == text]
        words = of_cases(group)
        labels = {one.case_id: one.label for one in group}
        valueless = {one.case_id for one in group if one.valueless}
        metric = group[0].requirement.metric
        groups = [
            (
                word,
                [labels[one] for one, of in words.items() if of == word and one not in valueless],
            )
            for word in (MET, MISSED, UNDECIDED)
        ]
        lacking = [label for one, label in (all_labels or {}).items() if one not in words]
        groups.append((f"no value of {metric}", [*(labels[one] for one in valueless), *lacking]))
        groups.append(("not predicted", list(without)))
        total = len(words) + len(lacking) + len(without)
        parts = [_part(word, those, total) for word, those in groups if those]
        # A measurement that is too small to be sure leaves a prediction as it is, and what one of
        # them leaves open is no reason where the other has decided.
        undecided = [one for one in group if words.get(one.case_id) == UNDECIDED]
        # Reasons that more trials do not change.
        open_ones = [one for one in undecided if one.verdict is Verdict.UNDECIDED]
        told = [one for one in open_ones if one.remark and not one.trials_needed]
        reasons = [one.remark for one in told if one.boards is None]
        on_boards = [(one.boards, one.reach) for one in told if one.boards and one.reach]
        if on_boards:
            reasons.append(depends_on_boards(group[0].requirement, on_boards))
        whys = "; ".join(list(dict.fromkeys(reasons))[:_NAMED])
        why = f" ({whys})" if whys else ""
        needed = max((one.trials_needed or 0 for one in undecided), default=0)
        more = f" (at least {needed:,} trials would decide)" if needed else ""
        found.append(f"{text}: {', '.join(parts)}{why}{more}.")
    return found


def _part(word: str, labels: Sequence[str], total: int) -> str:
    """`met in 1 of 2 cases (tls 1.3)`."""
    if total == 1:
        return word
    if len(labels) == total:
        return f"{word} in {'both' if total == 2 else f'all {total}'} cases"
    return f"{word} in {len(labels)} of {total} cases{_named(labels)}"


def _named(labels: Sequence[str]) -> str:
    return f" ({'; '.join(labels)})" if len(labels) <= _NAMED and all(labels) else ""
