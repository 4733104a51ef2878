# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a study varied, and what each of its cases has on each of these axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warifu.results import Results, Setting, duration

#: Columns that follow from others: they set no cases apart by themselves.
_FOLLOWING = {"jitter_mean_ns", "jitter_max_ns", "loss_model", "loss_probability"}
#: Columns of results under the names that studies have for them.
_PATHS = {
    "tls": "stack.tls",
    "session": "stack.session",
    "rtt_ns": "link.rtt",
    "loss_mean": "link.loss",
    "coap_type": "stack.message_type",
    "dds_middleware": "stack.middleware",
    "dds_crypto": "stack.crypto",
    "dds_aead": "stack.crypto_aead",
    "key_store": "key_store",
    "device": "device",
    "server": "server",
    "link": "link",
}


@dataclass(frozen=True)
class Axis:
    """A setting that was varied, with its values as written."""

    path: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """The cases of a study by their choices on its axes."""

    axes: tuple[Axis, ...]
    #: By case: its value on each axis.
    choices: dict[str, tuple[str, ...]]
    #: By choices: the case.
    cases: dict[tuple[str, ...], str]

    def settings(self, case_id: str) -> dict[str, str]:
        """A case's choices by dotted path."""
        return dict(zip((axis.path for axis in self.axes), self.choices[case_id], strict=True))


def grid_of(results: Results) -> Grid:
    """The axes as the study wrote them; of a study of very many cases, whose manifest lists none,
    from the columns in which the cases differ."""
    listed = {
        str(case["case_id"]): [(str(path), str(value)) for path, value in case["choices"]]
        for case in results.manifest["cases"]
    }
    if listed and all(case_id in listed for case_id in results.cases):
        paths = [path for path, _ in next(iter(listed.values()))]
        chosen = {one: tuple(value for _, value in listed[one]) for one in results.cases}
        if paths and len(set(chosen.values())) == len(chosen):
            return _grid(paths, chosen)
    return _grid_of_columns(results.cases, dict(results.manifest.get("vary") or []))


def _grid_of_columns(cases: dict[str, dict[str, Setting]], vary: dict[str, list[str]]) -> Grid:
    values: dict[str, dict[Setting, None]] = {}
    for settings in cases.values():
        for name, value in settings.items():
            values.setdefault(name, {})[value] = None
    varying = [name for name, found in values.items() if len(found) > 1 and name not in _FOLLOWING]
    # The suite follows from version, certificate and AEAD; alone it does not tell more.
    if len(varying) > 1 and "tls" in varying:
        varying = [name for name in varying if name != "cipher_suite"]
    chosen = {
        case_id: tuple(word(name, settings.get(name)) for name in varying)
        for case_id, settings in cases.items()
    }
    paths = [_PATHS.get(name, name) for name in varying]
    order = [
        _order({one: word(name, one) for one in values[name]}, vary.get(path, ()))
        for name, path in zip(varying, paths, strict=True)
    ]

    def place(case_id: str) -> list[float]:
        return [
            known.get(cases[case_id].get(name), math.inf)
            for name, known in zip(varying, order, strict=True)
        ]

    return _grid(paths, {case_id: chosen[case_id] for case_id in sorted(chosen, key=place)})


def _order(values: dict[Setting, str], written: Sequence[str]) -> dict[Setting, float]:
    """The place of each value, which has these words: as the study has them; by size where it has
    numbers in other words; else as far as it calls them the same."""
    places = {word: float(at) for at, word in enumerate(written)}
    numbers = [one for one in values if isinstance(one, int | float)]
    if len(numbers) == len(values) and not all(word in places for word in values.values()):
        return {one: float(one) for one in numbers}
    return {one: places[word] for one, word in values.items() if word in places}


def word(column: str, value: Setting) -> str:
    """A column's value as a study would write it."""
    if value is None:
        return "none"
    if column.endswith("_ns") and isinstance(value, int | float):
        return duration(value)
    if column == "loss_mean" and isinstance(value, float):
        return f"{value * 100:g} %"
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _grid(paths: list[str], chosen: dict[str, tuple[str, ...]]) -> Grid:
    columns = list(zip(*chosen.values(), strict=True)) if paths else []
    axes = [Axis(path, tuple(dict.fromkeys(of))) for path, of in zip(paths, columns, strict=True)]
    # An axis of which every case has the same sets nothing apart.
    kept = [index for index, axis in enumerate(axes) if len(axis.values) > 1]
    choices = {one: tuple(values[at] for at in kept) for one, values in chosen.items()}
    cases = {values: one for one, values in choices.items()}
    return Grid(tuple(axes[at] for at in kept), choices, cases)
