# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Two secured ends of the latency probes, what `warifu trace` says of them, and what they sent."""

from __future__ import annotations

import datetime
import struct
import subprocess
import sys
from collections.abc import Iterator
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


def traced(stack: str, kinds: Kinds | None, sample_bytes: int) -> str:
    """A sample and its answer, as `warifu trace` prints them."""
    names = ("data", "metadata", "rtps")
    # Profiles that are shipped: of a trace they are but names.
    settings = {"device": "gr-peach", "server": "gr-peach"} | {
        f"stack.{name}_protection": kind for name, kind in zip(names, kinds or (), strict=False)
    }
    command = [sys.executable, "-m", "warifu.cli", "trace", "--stack", stack]
    command += ["--set", f'pattern.response_body="{sample_bytes} B"']
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def rtps_lengths(capture: bytes) -> Iterator[tuple[int, int]]:
    """Who sent each RTPS message in a capture of Ethernet (pcap-savefile(5)), the last octet of its
    address, and how long it is, B, as UDP's header has it: IP may carry one in several packets, of
    which the first counts."""
    at = 24
    while at + 16 <= len(capture):
        (kept,) = struct.unpack_from("<I", capture, at + 8)
        frame = capture[at + 16 : at + 16 + kept]
        at += 16 + kept
        udp = frame[14 + 4 * (frame[14] & 15) :]
        if frame[12:14] == b"\x08\x00" and udp[8:12] == b"RTPS":
            (length,) = struct.unpack_from(">H", udp, 4)
            yield frame[14 + 15], length - 8
