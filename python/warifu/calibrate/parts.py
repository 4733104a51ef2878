# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The parts of a calibration, one a protocol, and what of each a study needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warifu import _core
from warifu.calibrate.coap import CoapPart
from warifu.calibrate.dds import DdsPart
from warifu.calibrate.https import HttpsPart
from warifu.calibrate.part import Draft, Item, Part
from warifu.calibrate.profile import Entry, Law, ProfileText, whatever
from warifu.case import Case

PARTS: tuple[Part, ...] = (HttpsPart(), CoapPart(), DdsPart())
"""In the order in which their costs are found: HTTPS finds those of the system, which the others
take as found."""

Items = Mapping[str, Sequence[Item]]
"""Things to be timed, by the name of their part."""


def operations() -> list[str]:
    """The name of everything that a device profile may have a cost for."""
    return [name for part in PARTS for name in part.operations]


def stand_in(others: Sequence[ProfileText]) -> Draft:
    """A device that can do everything, to read studies with; its figures mean nothing."""
    one_us = Law.constant(1_000.0)
    draft = Draft(others).having(Entry(name, whatever(name), one_us) for name in operations())
    primitives = _core.primitives()
    return draft.having(Entry(name, {}, one_us, is_primitive=True) for name in primitives)


def needed(cases: Sequence[str] | None) -> dict[str, list[Item]]:
    """What is to be timed for these cases (canonical JSON); None: for any."""
    parsed = None if cases is None else [Case.from_json(text) for text in cases]
    return {part.name: part.needed(parsed) for part in PARTS}


def missing(timed: Items, wanted: Items) -> dict[str, list[Item]]:
    """What is wanted and was not timed, by part; parts that miss nothing are left out."""
    found = {
        part.name: part.missing(timed.get(part.name, ()), wanted.get(part.name, ()))
        for part in PARTS
    }
    return {name: items for name, items in found.items() if items}


def merged(*several: Items) -> dict[str, list[Item]]:
    """All of them, each item once."""
    return {
        part.name: part.merged(item for items in several for item in items.get(part.name, ()))
        for part in PARTS
    }
