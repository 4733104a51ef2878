# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What went into a prediction: its figures with kind and source, and what they are worth."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from warifu.report.figures import number
from warifu.report.table import Column, Table
from warifu.results import KINDS, duration, figures_of, is_assumed, what_of

#: A round figure such as `1 s` does not say how many of its zeros count: it is taken to be known
#: to a millisecond at least.
_COARSEST_NS = 1e6
#: Kinds of figures that somebody wrote down, to so many digits and no more.
_WRITTEN = ("published", "assumed")
#: What an operation's name begins with; a primitive's does not.
_ENDS = ("client.", "server.")
#: The figure that the rest of an operation, beside its primitives, is counted by.
_INSTRUCTION = "instruction"
_TIME = re.compile(r"(\d+(?:\.\d+)?)(?: (ns|us|ms|s|min)\b)?")
_UNITS_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10}
#: More names than this in a line are not read.
_NAMED = 4


def inputs_table(manifest: dict[str, Any]) -> Table:
    """Every figure that a prediction used, once, with its source and kind; weakest kind first.

    A figure that has another value in other cases says in which it has this one.
    """
    table = Table(
        "inputs of the prediction",
        [
            Column("figure", number=False),
            Column("value", number=False),
            Column("kind", number=False),
            Column("source", number=False),
        ],
    )
    figures = distinct_inputs(manifest)
    names = [str(figure.get("name")) for figure in figures]
    for figure, name in zip(figures, names, strict=True):
        where = ""
        if names.count(name) > 1:
            where = _where(figure, manifest)
        value, kind, source = _value(figure), figure.get("kind"), figure.get("source")
        table.add(
            [
                f"{name} ({where})" if where else name,
                value or "-",
                str(kind or "-"),
                str(source or "-"),
            ],
            {"name": name, "in": where, "value": value, "kind": kind, "source": source},
        )
    return table


def _value(figure: dict[str, Any]) -> str:
    """A figure's value with its unit, as people write it."""
    value, unit = str(figure["value"]), str(figure.get("unit") or "")
    if not what_of(figure) and unit.startswith("1/"):
        # Older versions left out these units alone: `250` of 1/s, `717` of 1/1024.
        return f"{value}{unit[1:]}"
    return value


def distinct_inputs(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Inputs of all cases without repetition, the weakest kinds first."""
    return sorted(manifest["figures"], key=lambda figure: -KINDS.index(figure["kind"]))


def remarks(manifest: dict[str, Any]) -> list[str]:
    """What no case's label says and the figures depend on, a line each."""
    return [
        *delays(manifest),
        *_without_source(manifest),
        *_unused_key_stores(manifest),
        *_older(manifest),
    ]


def delays(manifest: dict[str, Any]) -> list[str]:
    """For each link with jitter what is added to its round trips, with the kinds of both."""
    lines: list[str] = []
    for case in manifest["cases"]:
        link = case["case"].get("link") or {}
        jitter = [float(one) for one in link.get("jitter") or []]
        mean = _mean(jitter)
        if not mean:
            continue
        rtt = float(link.get("rtt") or 0.0)
        share = 2.0 * mean / (rtt + 2.0 * mean)
        lines.append(
            f"RTT {duration(rtt)} ({_kind(manifest, case, 'rtt')}) plus jitter of "
            f"{number(mean / 1e6, 0 if mean >= 1e7 else 1)} ms on average each way "
            f"({_kind(manifest, case, 'jitter')}; {duration(jitter[0])} to "
            f"{duration(jitter[-1])} a packet): jitter is about {share:.0%} of a round trip "
            "and counts as propagation.".replace("%", " %")
        )
    return list(dict.fromkeys(lines))


def origins(manifest: dict[str, Any]) -> list[str]:
    """Which costs of messages are a device's own figures, and which a library's recipe gave."""
    whats = [what_of(figure) for figure in manifest["figures"]]
    own: dict[str, list[str]] = {}
    lowered: dict[str, list[str]] = {}
    for what in whats:
        of, owner, key = (what.get(name, "") for name in ("of", "owner", "key"))
        if of == "recipe":
            lowered.setdefault(owner, []).append(key)
        elif of == "device" and key.startswith(_ENDS):
            own.setdefault(owner, []).append(key)
    lines = [
        f"{owner}: {len(keys)} costs of messages and system calls are figures of its own profile."
        for owner, keys in own.items()
    ]
    for owner, keys in lowered.items():
        some = ", ".join(keys[:_NAMED])
        more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
        lines.append(
            f"{len(keys)} costs of messages come from the recipe of {owner}, which lowers them to "
            f"the device's primitives: {some}{more}."
        )
    return lines


def finest_ns(manifest: dict[str, Any], case_id: str) -> float:
    """The last place that a predicted time of this case is worth, ns; 0 where nothing limits it.

    A published or assumed time is known to the last digit that it is written with, and a sum is
    known no better than its worst part; so a prediction gets no decimal beyond the coarsest of
    them. Constants of the kernel are exact, and what was calibrated or chosen by the study has its
    own spread or none: neither limits.
    """
    places = [
        float(figure.get("last_digit_ns") or 0.0)
        for figure in figures_of(manifest, case_id)
        if figure["kind"] in _WRITTEN and what_of(figure).get("of") != "tcp"
    ]
    return min(max(places, default=0.0), _COARSEST_NS)


def _mean(quantiles: Sequence[float]) -> float:
    """The mean of a law given by equally spaced quantiles, linear in between
    (crates/core/model, Distribution::from_quantiles)."""
    if len(quantiles) < 2:
        return sum(quantiles)
    inner = sum(quantiles) - (quantiles[0] + quantiles[-1]) / 2.0
    return inner / (len(quantiles) - 1)


def _kind(manifest: dict[str, Any], case: dict[str, Any], key: str) -> str:
    """The kind of a link's figure in a case; what the study chose is said to be its choice."""
    profile = (case["case"].get("link") or {}).get("profile")
    # Older versions named a figure by its profile, or by `link` where the study chose it.
    names = {f"{profile} {key}", f"link {key}"}
    for figure in figures_of(manifest, case["case_id"]):
        what = what_of(figure)
        if (what["of"], what["key"]) == ("link", key) if what else figure["name"] in names:
            return "chosen by the study" if figure["evidence"] is None else str(figure["kind"])
    return "not stated"


def assumed_figures(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The inputs that have no source, those first that may move a time furthest."""
    return _most_at_stake(manifest, filter(is_assumed, distinct_inputs(manifest)))


def published_figures(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The inputs that are taken from a source, in the same order."""
    figures = distinct_inputs(manifest)
    return _most_at_stake(manifest, (one for one in figures if one["kind"] == "published"))


def _most_at_stake(
    manifest: dict[str, Any], figures: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    spent = _spent_ns(manifest)
    return sorted(figures, key=lambda figure: -_at_stake_ns(figure, spent))


def tally(manifest: dict[str, Any]) -> str:
    """How many inputs there are of each kind; what is neglected is no assumed figure."""
    figures = distinct_inputs(manifest)
    assumed = len(assumed_figures(manifest))
    every = [str(figure["kind"]) for figure in figures]
    counts = {kind: every.count(kind) for kind in KINDS}
    # Of an older version's figures it is not known which are neglected.
    if assumed or not _is_older(manifest):
        neglected, counts["assumed"] = counts["assumed"] - assumed, assumed
        counts["neglected"] = neglected
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)


def named(figures: Sequence[dict[str, Any]], most: int) -> str:
    """`a, b and 3 more`: the first names, each once, and how many figures have others."""
    names = list(dict.fromkeys(str(figure.get("name")) for figure in figures))
    rest = sum(str(figure.get("name")) not in names[:most] for figure in figures)
    return ", ".join(names[:most]) + (f" and {rest} more" if rest else "")


def _spent_ns(manifest: dict[str, Any]) -> dict[tuple[str, str], float]:
    """By device and operation what a connection spends on it, at most of all cases; what a recipe
    has an operation's remainder of instructions cost is below `instruction`."""
    by_case: dict[tuple[str, str], dict[str, float]] = {}
    every = [str(case["case_id"]) for case in manifest.get("cases") or []]
    for cost in manifest.get("costs") or []:
        spent = float(cost.get("count") or 0) * float(cost.get("mean_ns") or 0.0)
        parts = {str(cost.get("operation")): spent}
        parts[_INSTRUCTION] = spent * float(cost.get("remainder") or 0.0)
        for operation, value in parts.items():
            cases = by_case.setdefault((str(cost.get("device")), operation), {})
            for case_id in cost.get("cases") or every:
                cases[case_id] = cases.get(case_id, 0.0) + value
    return {key: max(cases.values(), default=0.0) for key, cases in by_case.items()}


def _at_stake_ns(figure: dict[str, Any], spent: dict[tuple[str, str], float]) -> float:
    """How far a figure may move a connection's time: the width of its band, as often as the
    figure is spent. One without a band may be anything."""
    low, high = _band_ns(str(figure.get("value") or ""))
    if figure.get("unit") not in {None, "ns"} or high <= 0.0:
        return 0.0
    what = what_of(figure)
    once = high - low if high > low else high
    middle = float(figure.get("number") or 0.0) or (low + high) / 2.0
    whole = spent.get((str(what.get("owner")), str(what.get("key"))), 0.0)
    times = whole / middle
    # A primitive's calls are not listed; it is called once at least.
    return once * (times if what.get("key") == _INSTRUCTION else max(1.0, times))


def _band_ns(value: str) -> tuple[float, float]:
    """The ends of a time as it is shown: `20 to 45 ns`, `mean 3 us, 1 us to 5 us`, `[1 ms, 2 ms]`,
    or `150 ms`; 0 where it is none."""
    shown = value.partition(", ")[2] if value.startswith("mean ") else value
    unit, ends = 0.0, []
    for digits, name in reversed(_TIME.findall(shown)):
        unit = _UNITS_NS.get(name, unit)
        ends.append(float(digits) * unit)
    return (min(ends), max(ends)) if ends else (0.0, 0.0)


def _without_source(manifest: dict[str, Any]) -> Iterable[str]:
    if figures := assumed_figures(manifest):
        yield f"Assumed, without a source: {named(figures, _NAMED)}."


def _unused_key_stores(manifest: dict[str, Any]) -> Iterable[str]:
    """A key store that is named and never called changes nothing; the label does not say so."""
    idle: dict[str, int] = {}
    # Figures are listed for all cases or for none, so without any nothing is known of the calls.
    known = manifest["figures"] and not _is_older(manifest)
    cases = manifest["cases"] if known else []
    # Without TLS there is nothing to sign, and no key store was chosen for it.
    cases = [case for case in cases if "tls" in (case["case"].get("stack") or {})]
    for case in cases:
        name = str((case["case"].get("key_store") or {}).get("profile") or "software")
        used = [what_of(figure) for figure in figures_of(manifest, case["case_id"])]
        called = {what["owner"] for what in used if what["of"] == "key_store_call"}
        if name not in {"software", *called}:
            idle[name] = idle.get(name, 0) + 1
    for name, count in idle.items():
        where = "this case" if len(cases) == 1 else f"{count} of {len(cases)} cases"
        yield (
            f"Key store {name} is never called in {where}, since the client signs nothing there "
            "(server authentication, or a resumed session)."
        )


def _is_older(manifest: dict[str, Any]) -> bool:
    """Whether a version wrote the figures that had them as text alone."""
    return any(not what_of(figure) for figure in manifest["figures"])


def _older(manifest: dict[str, Any]) -> Iterable[str]:
    """What is missing where a version wrote the figures that had them as text alone."""
    if _is_older(manifest):
        yield (
            "The inputs were written by an older version, which did not say to which digit they "
            "are known, which of them are neglected, nor which are calls of a key store: times may "
            "show more decimals than the inputs bear, and neither the inputs without a source nor "
            "key stores that are never called are named here; run the study again."
        )


def _where(figure: dict[str, Any], manifest: dict[str, Any]) -> str:
    """What the cases that use a figure chose and not all did: `stack.session full`."""
    cases = manifest["cases"]
    used = figure.get("cases", ())
    mine = [case for case in cases if case["case_id"] in used]
    if not cases:
        return f"in {len(used)} cases"
    words = []
    for axis, (path, _) in enumerate(cases[0]["choices"]):
        every = {case["choices"][axis][1] for case in cases}
        own = list(dict.fromkeys(case["choices"][axis][1] for case in mine))
        if len(own) < len(every):
            words.append(f"{path} {' or '.join(own)}")
    return ", ".join(words) or f"in {len(mine)} of {len(cases)} cases"
