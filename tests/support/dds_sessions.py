# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Two secured ends of the latency probes."""

from __future__ import annotations

import datetime
from pathlib import Path

from support.cyclone import ours
from warifu.dds.governance import Basic, Governance, Protection
from warifu.dds.keystore import create

Kinds = tuple[str, str, str]
"""data, metadata, rtps, as governance names them."""


def ends(
    folder: Path, kinds: Kinds | None, aead: str | None = None
) -> tuple[list[str | Path], list[str | Path]]:
    """Arguments that secure the end that asks and the one that answers, with keys of their own:
    with Warifu's plugin for an AEAD, with Cyclone's for none; no arguments without governance."""
    if kinds is None:
        return [], []
    data, metadata, rtps = kinds
    governance = Governance(Basic(data), Protection(metadata), Protection(rtps))
    now = datetime.datetime.now(datetime.UTC)
    made = create(folder / "keys", ["/asks", "/answers"], governance, now=now)
    plugin: list[str | Path] = []
    if aead is not None:
        library, init = ours(aead)
        plugin = ["--crypto", f"{library}:{init}"]
    asks, answers = (["--enclave", one.folder, *plugin] for one in made.values())
    return asks, answers
