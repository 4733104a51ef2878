# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The scaled part of the profiles that come with Warifu: written by `scripts/devices_page.py`,
held current by a test."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

from warifu import _core
from warifu.devices.catalog import device
from warifu.devices.figures import Code, Figure
from warifu.devices.profile import MARK, Draft, Given, Stated, complete, rest
from warifu.devices.scaling import Corpus


def published(texts: Mapping[str, str]) -> dict[str, str]:
    """By name, what stands before `MARK`, of the profiles that have it."""
    return {name: text.partition(MARK)[0] for name, text in texts.items() if MARK in text}


def corpus(texts: Mapping[str, str]) -> Corpus:
    """The devices to scale from: published figures alone, so that none rests on a scaled one."""
    heads = {name: text.partition(MARK)[0] for name, text in texts.items()}
    found = [
        device(name, head, f"{name}.toml")
        for name, head in heads.items()
        if "\n[[primitive]]" in head and "\ncore = " in head
    ]
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
