# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One sentence for each choice that was varied."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warifu.answer import amounts, effects, words
from warifu.answer.axes import Axis, Grid
from warifu.answer.effects import ALIKE, Choice, Context, Effect
from warifu.answer.model import Change
from warifu.answer.samples import Samples
from warifu.compare import stats
from warifu.compare.stats import Interval
from warifu.results import Results

#: Of an axis with more values than this the two that differ most are told.
_MOST_VALUES = 4
#: A sentence names no more differences of one value than this.
_MOST_EFFECTS = 6
#: So far from a whole number of round trips a time may be.
_WHOLE = 0.06
#: Bytes are told from this share of all.
_BYTES = 0.05
#: Axes whose values are names that tell nothing of each other.
_NAMES = {"device", "server", "link", "key_store", "stack", "group", "aead", "cipher_suite"}
#: So many cases are looked at for the end of their responses.
_LOOKED_AT = 200
#: A difference below this share of the whole is said to be so small.
_SMALL = 0.01
#: The tail is told where it changes by so much more than the median, and by this share of it.
_TAIL_FACTOR, _TAIL_SHARE = 2.0, 0.05


@dataclass(frozen=True)
class _Teller:
    """Turns effects of one unit into words."""

    amount: Callable[[float, float], str]
    nothing: str
    what: str = ""


def of_axes(samples: Samples, grid: Grid, baseline: str) -> list[str]:
    """A sentence for each axis, what can be chosen before what is given."""
    order = sorted(
        range(len(grid.axes)),
        key=lambda at: words.key_of(grid.axes[at].path) in words.CONDITIONS,
    )
    sentences = [_of_axis(samples, grid, at, baseline) for at in order]
    return [one for one in [*sentences, last_byte(samples, baseline)] if one]


def last_byte(samples: Samples, baseline: str) -> str:
    """When long responses end; the other figures end with their first byte."""
    results = samples.results
    found: dict[str, tuple[float, float]] = {}
    for case_id in (baseline, *list(results.cases)[:_LOOKED_AT]):
        for metric in results.later(case_id):
            times = results.distribution(case_id, metric)
            if times.values.size and results.cases[case_id].get("protocol") == "https":
                interval = stats.quantile_interval(times, 0.5)
                found.setdefault(case_id, (times.quantile(0.5), interval.half_width))
    if not found:
        return ""
    ordered = sorted(found, key=lambda one: found[one][0])
    ends = list(dict.fromkeys([ordered[0], ordered[-1]]))
    shown = [
        f"{amounts.time(*found[one], samples.finest)}{_of_label(results, one)}" for one in ends
    ]
    return (
        f"The last byte of a long response is there after {words.listed(shown, 'to')}; the other "
        "figures end with its first."
    )


def _of_label(results: Results, case_id: str) -> str:
    label = results.label(case_id)
    return f" ({label})" if label and len(results.cases) > 1 else ""


def headline(samples: Samples, grid: Grid, baseline: str) -> str:
    """The largest difference that each option makes, in one sentence; conditions are left out
    unless nothing else was varied."""
    every = range(len(grid.axes))
    options = [at for at in every if words.key_of(grid.axes[at].path) not in words.CONDITIONS]
    parts = []
    for at in options or every:
        axis, reference = grid.axes[at], grid.choices[baseline][at]
        values = [value for value in axis.values if value != reference]
        told = [
            largest
            for value in _few(samples, grid, at, reference, values)
            if (
                largest := _largest(
                    axis,
                    value,
                    _choice(samples, grid, at, value, reference).time,
                    samples.finest,
                )
            )
        ]
        if told:
            parts.append(", ".join(told))
    return f"{words.capital('; '.join(parts))}." if parts else ""


def _largest(axis: Axis, value: str, found: Sequence[Effect], finest: float) -> str:
    """The largest difference that is certain; empty where none is."""
    sure = [one for one in found if one.certain]
    if not sure:
        return ""
    one = max(sure, key=lambda each: abs(each.change.value))
    half = one.change.interval.half_width
    most = max(one.least, one.most, key=abs)
    # So much more than elsewhere that one number does not say it.
    least = min(min(abs(each.least), abs(each.most)) for each in sure)
    elsewhere = len(sure) < len(found) or any(each.change.value * most < 0 for each in sure)
    up_to = "up to " if elsewhere or abs(most) > 1.05 * least else ""
    verb = "saves" if one.change.value < 0 else "adds"
    return f"{words.noun(axis.path, value)} {verb} {up_to}{amounts.time(most, half, finest)}"


def _few(
    samples: Samples, grid: Grid, at: int, reference: str, values: Sequence[str]
) -> Sequence[str]:
    """All values of an axis, or of many the two that differ most."""
    if len(values) <= _MOST_VALUES:
        return values
    return _extremes(samples, grid, at, reference, values)


def _of_axis(samples: Samples, grid: Grid, at: int, baseline: str) -> str:
    axis = grid.axes[at]
    reference = grid.choices[baseline][at]
    values = [value for value in axis.values if value != reference]
    if words.key_of(axis.path) == "rtt" and (trips := _round_trips(samples, grid, at, reference)):
        return trips
    few = _few(samples, grid, at, reference, values)
    choices = [_choice(samples, grid, at, value, reference) for value in few]
    parts = [_of_choice(one, samples.finest, first=index == 0) for index, one in enumerate(choices)]
    sentence = "; ".join(part for part in parts if part)
    if not sentence:
        return ""
    if len(few) < len(values):
        sentence = (
            f"of {len(axis.values)} values of {axis.path} the two that differ most: {sentence}"
        )
    return f"{words.capital(sentence)}."


def _choice(
    samples: Samples, grid: Grid, at: int, value: str, reference: str, alike: float = ALIKE
) -> Choice:
    axis, others = grid.axes[at], [one for index, one in enumerate(grid.axes) if index != at]
    places = effects.contexts(grid, at, [value, reference])
    pairs = {
        one: (effects.case_of(grid, at, one, value), effects.case_of(grid, at, one, reference))
        for one in places
    }
    samples.prepare({case_id for pair in pairs.values() for case_id in pair})

    def quantile(p: float) -> Callable[[Context], float]:
        return lambda context: samples.of(pairs[context][1]).times.quantile(p)

    def grown(p: float) -> list[Effect]:
        changes = {context: samples.change(*pair, p) for context, pair in pairs.items()}
        return effects.effects(changes, others, quantile(p), alike=alike)

    sizes = {context: samples.size_change(*pair) for context, pair in pairs.items()}
    size = effects.effects(sizes, others, lambda one: samples.of(pairs[one][1]).size.mean(), 1)
    return Choice(axis, value, reference, grown(0.50), grown(0.99), size)


def _extremes(
    samples: Samples, grid: Grid, at: int, reference: str, values: Sequence[str]
) -> list[str]:
    """The values with the least and the greatest time, in a combination that all of them have."""
    places = effects.contexts(grid, at, [reference])
    place = next(
        (one for one in places if all(_has(grid, at, one, value) for value in values)), None
    )
    if place is None:
        return [values[0], values[-1]]
    cases = {value: effects.case_of(grid, at, place, value) for value in values}
    samples.prepare(cases.values())
    ordered = sorted(values, key=lambda one: samples.of(cases[one]).times.quantile(0.5))
    return [ordered[0], ordered[-1]]


def _has(grid: Grid, at: int, context: Context, value: str) -> bool:
    return (*context[:at], value, *context[at:]) in grid.cases


def _of_choice(choice: Choice, finest: float, first: bool) -> str:
    subject = words.noun(choice.axis.path, choice.value)
    against = ""
    if first and (len(choice.axis.values) > 2 or words.key_of(choice.axis.path) in _NAMES):
        against = f" against {words.short(choice.axis.path, choice.reference)}"
    in_time = _Teller(
        lambda value, half: amounts.time(value, half, finest), "no difference in time"
    )
    on_link = _Teller(amounts.size, "")
    tail = _of_tail(choice, in_time)
    # Beside the tail the median is a remark.
    time = _told(_as_one(choice.time) if tail else choice.time, in_time)
    if not time:
        return ""
    sentence = f"{subject} {time}{against}"
    if tail:
        sentence += f" to the median, but {tail}"
    if size := _of_size(choice, on_link):
        sentence += f", and {size} on the link"
    return sentence


def _of_tail(choice: Choice, teller: _Teller) -> str:
    """What becomes of P99, where that is another matter."""
    median = max((abs(one.change.value) for one in choice.time), default=0.0)
    worst = max(choice.tail, key=lambda one: abs(one.change.value), default=None)
    if worst is None or not worst.certain:
        return ""
    value = abs(worst.change.value)
    if value < _TAIL_FACTOR * median or value < _TAIL_SHARE * worst.whole:
        return ""
    verb = "saves" if worst.change.value < 0 else "adds"
    alike = [
        one for one in choice.tail if one.certain and one.change.value * worst.change.value > 0
    ]
    ends = [(abs(end), one) for one in alike for end in (one.least, one.most)]
    most, of = max(ends, key=lambda end: end[0])
    least, half = min(end for end, _ in ends), of.change.interval.half_width
    if len(alike) < len(choice.tail):
        # Elsewhere it is another matter, or none.
        return f"{verb} up to {teller.amount(most, half)} to P99"
    shown = teller.amount(most, half)
    if most > 1.05 * least:
        shown = _span(least, most, half, teller)
    return f"{verb} {shown} to P99"


def _as_one(found: Sequence[Effect]) -> list[Effect]:
    """Several effects told as their range, unless some surely save and others surely add."""
    signs = {one.change.value > 0.0 for one in found if one.certain}
    if not found or len(signs) > 1:
        return list(found)
    hull = Interval(
        min(one.change.interval.low for one in found),
        max(one.change.interval.high for one in found),
    )
    least, most = min(one.least for one in found), max(one.most for one in found)
    whole = max(one.whole for one in found)
    return [Effect((), Change(found[len(found) // 2].change.value, hull), least, most, whole)]


def _of_size(choice: Choice, teller: _Teller) -> str:
    """What becomes of the bytes; empty where that is a small part of them."""
    known = [one for one in choice.size if abs(one.change.value) >= _BYTES * one.whole]
    known = [one for one in known if one.certain]
    if not known:
        return ""
    return _told(choice.size, teller)


def _told(found: Sequence[Effect], teller: _Teller) -> str:
    """`adds 1.3 ms at 0 ms RTT, saves 59 ms at 60 ms RTT`."""
    if len(found) > _MOST_EFFECTS:
        return _ranged(found, teller)
    parts, before = [], ""
    # One branch after the other: what is common to several is said once.
    for branch in _branches(found):
        inner = [_phrase(one, teller, depth=1 if len(branch) > 1 else 0) for one in branch]
        shown = []
        for verb, rest in inner:
            shown.append(f"{'' if verb == before else verb + ' '}{rest}".strip())
            before = verb
        where = _where(branch[0].where[:1]) if len(branch) > 1 else ""
        parts.append(words.listed(shown) + where)
    return (
        "; ".join(parts) if any(len(one) > 1 for one in _branches(found)) else words.listed(parts)
    )


def _branches(found: Sequence[Effect]) -> list[list[Effect]]:
    """Effects that share their first circumstance."""
    branches: list[list[Effect]] = []
    for one in found:
        deep = len(one.where) > 1
        if branches and deep and branches[-1][0].where[:1] == one.where[:1]:
            branches[-1].append(one)
        else:
            branches.append([one])
    return branches


def _phrase(one: Effect, teller: _Teller, depth: int) -> tuple[str, str]:
    """Verb and rest of one difference."""
    where = _where(one.where[depth:])
    value, interval = one.change.value, one.change.interval
    half = max(interval.high - value, value - interval.low)
    small = abs(value) < _SMALL * abs(one.whole) if one.whole else False
    if not one.certain:
        if small and max(abs(interval.low), abs(interval.high)) < _SMALL * abs(one.whole):
            return "makes", f"{teller.nothing or 'no difference'}{where}"
        low, high = (_signed(end, teller, half) for end in interval)
        return "makes", f"no certain difference{where} ({low} to {high})"
    least, most = sorted((abs(one.least), abs(one.most)))
    shown = teller.amount(value, half)
    if least > 0.0 and most / least > 1.15:
        shown = _span(least, most, half, teller)
    if not any(letter in "123456789" for letter in shown):
        return "makes", f"{teller.nothing or 'no difference'}{where}"
    return ("saves" if value < 0 else "adds"), f"{shown}{' (below 1 %)' if small else ''}{where}"


def _span(least: float, most: float, half: float, teller: _Teller) -> str:
    """`500 B to 1.0 kB`, `1.6 to 2.1 ms`: a unit that both have is said once."""
    low, high = teller.amount(least, half), teller.amount(most, half)
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


def _ranged(found: Sequence[Effect], teller: _Teller) -> str:
    """Too many to tell one by one: the two ends."""
    ends = [min(found, key=lambda one: one.least), max(found, key=lambda one: one.most)]
    shown = []
    for one, value in zip(ends, (ends[0].least, ends[1].most), strict=True):
        verb = "saves" if value < 0 else "adds"
        half = one.change.interval.half_width
        shown.append(f"{verb} {teller.amount(value, half)}{_where(one.where)}")
    return f"{shown[0]} at one end and {shown[1]} at the other"


def _where(places: Sequence[tuple[str, str]]) -> str:
    shown = ""
    for one in (words.context(path, value) for path, value in places):
        # `with TLS 1.2 and a full handshake`
        shared = " with " in f" {shown}" and one.startswith("with ")
        shown += f" and{one.removeprefix('with')}" if shared else f" {one}"
    return shown


def _signed(value: float, teller: _Teller, half: float) -> str:
    if not math.isfinite(value):
        return "unknown"
    return f"{'-' if value < 0 else '+'}{teller.amount(value, half)}"


def _round_trips(samples: Samples, grid: Grid, at: int, reference: str) -> str:
    """How many round trips a connection takes, where its time grows by whole ones; else empty."""
    axis = grid.axes[at]
    ms = {value: amounts.parsed_ms(value) for value in axis.values}
    known = {value: span for value, span in ms.items() if span is not None}
    if len(known) < len(ms) or reference not in known:
        return ""
    far = max(known, key=lambda one: abs(known[one] - known[reference]))
    apart = (known[far] - known[reference]) * 1e6
    if not apart:
        return ""
    trips: list[tuple[Effect, int]] = []
    for one in _choice(samples, grid, at, far, reference, _WHOLE).time:
        ratio = [end / apart for end in (one.least, one.most)]
        whole = round(ratio[0])
        if whole < 1 or any(abs(each - whole) > _WHOLE for each in ratio):
            return ""
        trips.append((one, whole))
    if not trips or len(trips) > _MOST_EFFECTS:
        return ""
    shown = [
        f"{count}{_where(one.where)}"
        if index
        else f"{count} round trip{'s' * (count > 1)}{_where(one.where)}"
        for index, (one, count) in enumerate(trips)
    ]
    return f"A connection waits for {words.listed(shown)}."
