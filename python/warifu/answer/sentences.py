# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One sentence for each choice that was varied."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warifu.answer import amounts, effects, words
from warifu.answer.axes import Axis, Grid
from warifu.answer.effects import ALIKE, Choice, Context, Effect
from warifu.answer.samples import Samples
from warifu.compare import stats
from warifu.results import Results

#: Of an axis with more values than this the fastest and the slowest are told.
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
#: A difference below this share of the whole is said to be so small, and what surely is below that
#: one is none.
_SMALL, _NOTHING = 0.01, 0.001
#: Where some combinations surely have a difference and others do not, those that go the other way
#: by so much of it are told, too.
_AGAINST = 0.25
#: The tail is told where it changes by so much more than the median, and by this share of it.
_TAIL_FACTOR, _TAIL_SHARE = 2.0, 0.05


@dataclass(frozen=True)
class _Teller:
    """Turns effects of one unit into words."""

    amount: Callable[[float, float], str]
    nothing: str
    #: Whether the subject is several things, such as `8 connections`.
    plural: bool = False

    def verb(self, name: str) -> str:
        """`adds`, or `add` of several."""
        return name if self.plural else f"{name}s"


def _in_time(finest: float, plural: bool = False) -> _Teller:
    """Of times that are known no finer than this, ns."""
    amount = functools.partial(amounts.time, finest_ns=finest)
    return _Teller(amount, "no difference in time", plural)


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
    ends = [(one.least, one) for one in found if one.saves]
    ends += [(one.most, one) for one in found if one.adds]
    if not ends:
        return ""
    most, one = max(ends, key=lambda end: abs(end[0]))
    shown = amounts.time(most, one.half, finest)
    # More than elsewhere, so that one number does not say it.
    least = min(min(abs(each.least), abs(each.most)) for each in found)
    elsewhere = any(not each.certain or each.change.value * most < 0 for each in found)
    up_to = "up to " if elsewhere or amounts.time(least, one.half, finest) != shown else ""
    verb = _verb("save" if most < 0 else "add", axis.path, value)
    by_board = _in_brackets(_by_board(one, _in_time(finest)))
    return f"{words.noun(axis.path, value)} {verb} {up_to}{shown}{by_board}"


def _verb(name: str, path: str, value: str) -> str:
    return name if words.plural(path, value) else f"{name}s"


def _few(
    samples: Samples, grid: Grid, at: int, reference: str, values: Sequence[str]
) -> Sequence[str]:
    """All values of an axis, or of many the fastest and the slowest."""
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
            f"of the {len(values)} other values of {axis.path} the fastest and the slowest: "
            f"{sentence}"
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
    on_link = all(samples.of(case_id).on_link for pair in pairs.values() for case_id in pair)
    return Choice(axis, value, reference, grown(0.50), grown(0.99), size, on_link)


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
    plural = words.plural(choice.axis.path, choice.value)
    in_time = _in_time(finest, plural)
    in_size = _Teller(amounts.size, "", plural)
    tail = _of_tail(choice, in_time)
    # Beside the tail the median is a remark.
    time = _told(_as_one(choice.time) if tail else choice.time, in_time)
    if not time:
        return ""
    sentence = f"{subject} {time}{against}"
    if tail:
        sentence += f" to the median, but {tail}"
    if size := _of_size(choice, in_size):
        where = "on the link" if choice.on_link else "in what the programs write"
        sentence += f", and {size} {where}"
    return sentence


def _of_tail(choice: Choice, teller: _Teller) -> str:
    """What becomes of P99, where that is another matter."""
    median = max((abs(one.change.value) for one in choice.time), default=0.0)
    worst = max(choice.tail, key=lambda one: abs(one.change.value), default=None)
    if worst is None or not worst.certain:
        return ""
    if any(_by_board(one, teller) for one in choice.time):
        # It is that of the slowest boards, which the range by the board tells.
        return ""
    value = abs(worst.change.value)
    if value < _TAIL_FACTOR * median or value < _TAIL_SHARE * worst.whole:
        return ""
    saves = worst.change.value < 0.0
    alike = [one for one in choice.tail if (one.saves if saves else one.adds)]
    told = f"{teller.verb('save' if saves else 'add')} {_up_to(alike, choice.tail, saves, teller)}"
    other = [one for one in choice.tail if (one.adds if saves else one.saves)]
    if other:
        # Elsewhere it is another matter.
        verb = teller.verb("add" if saves else "save")
        return f"{told} to P99 and elsewhere {verb} {_up_to(other, [], not saves, teller)}"
    return f"{told} to P99"


def _up_to(alike: Sequence[Effect], every: Sequence[Effect], saves: bool, teller: _Teller) -> str:
    """`2 to 3 ms` of effects that are alike, where these are all and sure; else `up to 3 ms`."""
    most = max(alike, key=lambda one: -one.least if saves else one.most)
    least = min(alike, key=lambda one: -one.most if saves else one.least)
    high, low = (most.least, least.most) if saves else (most.most, least.least)
    half = max(one.half for one in alike)
    if len(alike) < len(every) or not every or not all(one.certain for one in alike):
        return f"up to {teller.amount(high, half)}"
    return _span(abs(low), abs(high), half, teller)


def _as_one(found: Sequence[Effect]) -> list[Effect]:
    """Several effects told as their range, unless some surely save and others surely add."""
    signs = {one.change.value > 0.0 for one in found if one.certain}
    if not found or len(signs) > 1:
        return list(found)
    least, most = min(one.least for one in found), max(one.most for one in found)
    whole = max(one.whole for one in found)
    each = tuple(one for effect in found for one in effect.each)
    middle = found[len(found) // 2].change.value
    change = effects.hull(middle, [one.change for one in found])
    return [Effect((), change, least, most, whole, each)]


def _of_size(choice: Choice, teller: _Teller) -> str:
    """What becomes of the bytes; empty where that is a small part of them."""
    known = [one for one in choice.size if not one.below(_BYTES)]
    if not any(one.saves or one.adds for one in known):
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
    verb, rest = _difference(one, teller)
    return teller.verb(verb), f"{rest}{where}"


def _difference(one: Effect, teller: _Teller) -> tuple[str, str]:
    """`add` and `2 to 3 ms`: it holds in each combination of the other choices."""
    if one.below(_NOTHING, surely=True):
        return "make", teller.nothing or "no difference"
    if not (one.saves or one.adds):
        return "make", f"no certain difference ({_uncertain(one, teller)})"
    against = max(0.0, one.most) if one.saves else max(0.0, -one.least)
    if (one.saves and one.adds) or against > _AGAINST * max(abs(one.least), abs(one.most)):
        ends = _from_to(one.least, one.most, one.half, teller)
        return "make", f"a difference of {ends}{_in_brackets(_by_board(one, teller))}"
    least, most = sorted((abs(one.least), abs(one.most)))
    if one.certain:
        shown = _span(least, most, one.half, teller)
    else:
        # Of some combinations it is not certain that there is any.
        shown = f"up to {teller.amount(one.least if one.saves else one.most, one.half)}"
    small = " (below 1 %)" if one.below(_SMALL) else ""
    small = _in_brackets(_by_board(one, teller)) or small
    if not _tells(shown):
        return "make", f"a difference too small to tell{small}"
    return ("save" if one.saves else "add"), f"{shown}{small}"


def _span(least: float, most: float, half: float, teller: _Teller) -> str:
    """`500 B to 1.0 kB`, `1.6 to 2.1 ms`: what both have is said once."""
    low, high = teller.amount(least, half), teller.amount(most, half)
    if low == high:
        return high
    if not _tells(low):
        return f"up to {high}"
    return amounts.span(low, high)


def _uncertain(one: Effect, teller: _Teller) -> str:
    """What a difference may be that is not certain."""
    interval, boards, reach = one.change.interval, one.change.boards, one.change.reach
    if boards is None or boards.half_width < interval.half_width:
        return _from_to(*reach, one.half, teller)
    ends = _from_to(*reach, amounts.half_of_band(*reach), teller)
    if interval.low * interval.high <= 0.0:
        return f"{ends} {amounts.BY_BOARD}"
    # The trials are sure of it, on the board in the middle.
    values = [_signed(end, teller, one.half) for end in (one.least, one.most)]
    return f"by the estimates {' to '.join(dict.fromkeys(values))}, {ends} {amounts.BY_BOARD}"


def _by_board(one: Effect, teller: _Teller) -> str:
    """`90 ms to 2.1 s by the board`, where assumed figures leave so much open that it tells."""
    boards = one.change.boards
    if boards is None:
        return ""
    wider = max(one.least - boards.low, boards.high - one.most)
    if wider < amounts.BY_BOARD_FROM * max(abs(one.least), abs(one.most)):
        return ""
    half = amounts.half_of_band(*boards)
    if boards.low * boards.high > 0.0:
        low, high = sorted(map(abs, boards))
        return f"{_span(low, high, half, teller)} {amounts.BY_BOARD}"
    return f"{_from_to(*boards, half, teller)} {amounts.BY_BOARD}"


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def _from_to(low: float, high: float, half: float, teller: _Teller) -> str:
    """`-3 ms to +4 ms`."""
    return f"{_signed(low, teller, half)} to {_signed(high, teller, half)}"


def _tells(amount: str) -> bool:
    """Whether an amount is more than 0 as it is shown."""
    return any(letter in "123456789" for letter in amount) or "without end" in amount


def _ranged(found: Sequence[Effect], teller: _Teller) -> str:
    """Too many to tell one by one: the two ends."""
    ends = [min(found, key=lambda one: one.least), max(found, key=lambda one: one.most)]
    shown = []
    for one, value in zip(ends, (ends[0].least, ends[1].most), strict=True):
        verb = teller.verb("save" if value < 0 else "add")
        amount = teller.amount(value, one.half)
        by_board = _in_brackets(_by_board(one, teller))
        shown.append(f"{verb} {amount}{by_board}{_where(one.where)}")
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
    shown = teller.amount(value, half)
    sign = ("-" if value < 0 else "+") if _tells(shown) else ""
    return f"{sign}{shown}"


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
