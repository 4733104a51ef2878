# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The scaled part of the profiles that come with Warifu: written by `scripts/devices_page.py`,
held current by a test."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

from warifu import _core
from warifu.devices.catalog import Device, device
from warifu.devices.figures import Code, Figure
from warifu.devices.profile import MARK, Draft, Given, Stated, complete, rest
from warifu.devices.scaling import Corpus


def published(texts: Mapping[str, str]) -> dict[str, str]:
    """By name, what stands before `MARK`, of the profiles that have it."""
    return {name: text.partition(MARK)[0] for name, text in texts.items() if MARK in text}


def corpus(texts: Mapping[str, str]) -> Corpus:
    """The devices to scale from: published figures alone, so that none rests on a scaled one."""
    found: list[Device] = []
    for name, text in published(texts).items():
        if "[[primitive]]" in text:
            found.append(device(name, text, f"{name}.toml"))
    return Corpus(found)


def completed(name: str, text: str, others: Corpus) -> str:
    """The profile with its scaled part made anew."""
    head = text.partition(MARK)[0]
    draft = _draft(name, head)
    return head + "\n".join(rest(draft, complete(draft, others.without(name)))) + "\n"


def _draft(name: str, head: str) -> Draft:
    table = tomllib.loads(head)

    def value(key: str) -> str:
        found = table[key]
        return str(found["value"] if isinstance(found, dict) else found)

    draft = Draft(
        name,
        table["description"],
        library=Stated(value("library")),
        core=Stated(value("core")),
        clock_hz=_core.clock_hz(value("clock")),
        code=Code(value("code")),
    )
    if "[[primitive]]" in head:
        view = device(name, head, f"{name}.toml")
        draft.given = [
            Given(Figure(primitive, one.call_ns, one.byte_ns, one.code), one.source, one.kind)
            for primitive, one in view.primitives.items()
        ]
    return draft
