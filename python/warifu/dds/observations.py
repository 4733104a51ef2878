# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes a profile as observations, in a results folder.

The stage of a row is its call site, or its program where it is about a message; the trial is the
process of a site (by the order in which they are shown), or the message.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from warifu.dds.profiling import Profile
from warifu.dds.recording import PARTS, Site
from warifu.m3.observations import About, Row, refuse_others, write_rows
from warifu.results import ResultsError

HALF = "profiled"
"""No half of a study: comparing and reporting have no use for it."""
UNITS = {
    "dds.crypto.calls": "1",
    "dds.crypto.failed": "1",
    "dds.crypto.bytes": "B",
    "dds.crypto.authenticated": "B",
    "dds.crypto.time": "ns",
    **{f"dds.crypto.{part}.time": "ns" for part in PARTS},
    "dds.plugin.calls": "1",
    "dds.plugin.bytes": "B",
    "dds.plugin.time": "ns",
    "dds.plugin.refused": "1",
    "dds.message.write": "ns",
    "dds.message.crypto": "ns",
    "dds.message.encryptions": "1",
    "dds.message.macs": "1",
    "dds.message.randoms": "1",
    "dds.message.encrypted": "B",
    "dds.probe.call": "ns",
    "dds.probe.message": "ns",
    "dds.probe.time": "ns",
}
"""Metrics by site (`dds.crypto`, sums over its calls), by function of Warifu's plugin, by message,
and of the probe itself."""


def check(folder: Path, *, replace: bool) -> None:
    """Raises ResultsError, or OSError, where `write` would: before the command is run for nothing.
    An earlier profile is replaced only where that was asked for."""
    if folder.is_symlink():
        raise ResultsError(f"{folder}: is a link: choose another folder with --out")
    if not folder.exists():
        above = next(one for one in folder.absolute().parents if one.exists())
        if not above.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(above))
        if not os.access(above, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(above))
        return
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not any(folder.iterdir()):
        return
    refuse_others(folder, HALF)
    if not (folder / "manifest.json").exists():
        raise ResultsError(
            f"{folder}: is not empty, and holds no profile: choose another folder with --out"
        )
    if not replace:
        raise ResultsError(
            f"{folder}: holds an earlier profile: choose another folder with --out, or replace it "
            "with --replace"
        )


def write(folder: Path, seen: Profile, run_id: str, started: str) -> None:
    """Writes a profile; replaces an older one.

    Raises ResultsError if the folder holds other results; StorageError and OSError where the file
    system refuses.
    """
    swaps = sorted({process.recording.swap or "none" for process in seen.processes})
    choices = {
        "command": " ".join(seen.command),
        "middleware": ", ".join(sorted({one.middleware or "" for one in seen.processes})),
        "swap": ", ".join(swaps),
        "probe": ", ".join(sorted({one.recording.build for one in seen.processes})),
    }
    aeads = sorted({one.aead for process in seen.processes for one in process.plugin})
    if aeads:
        # Left out where it is not used, so that the ids of other cases stay.
        choices["plugin"] = ", ".join(aeads)
    name = Path(seen.command[0]).name
    about = About(name, choices, HALF, "measured", "measured", run_id, started)
    write_rows(folder, about, _rows(seen), UNITS)


def _rows(seen: Profile) -> Iterator[Row]:
    message = 0
    for index, process in enumerate(seen.processes):
        numbers = process.recording.numbers
        yield ("dds.probe.call", process.recording.name, index, numbers["call_cost_ps"] / 1000)
        yield ("dds.probe.message", process.recording.name, index, numbers["message_cost_ps"] / 1e3)
        yield ("dds.probe.time", process.recording.name, index, process.own_cost_ns)
        for stage, sites in _by_name(process.sites).items():
            for metric, number in (
                ("calls", "operations"), ("failed", "failed"), ("bytes", "bytes"),
                ("authenticated", "aad_bytes"), ("time", "ns"),
                *((f"{part}.time", f"{part}_ns") for part in PARTS),
            ):  # fmt: skip
                value = sum(site.numbers[number] for site in sites)
                yield (f"dds.crypto.{metric}", stage, index, float(value))
        for count in process.plugin:
            yield ("dds.plugin.calls", count.site, index, float(count.calls))
            yield ("dds.plugin.bytes", count.site, index, float(count.bytes))
            yield ("dds.plugin.time", count.site, index, float(count.time_ns))
            refused = sum(count.refused.values())
            yield ("dds.plugin.refused", count.site, index, float(refused))
        for one in process.recording.messages:
            for metric, number in (
                ("write", "ns"), ("crypto", "crypto_ns"), ("encryptions", "encryptions"),
                ("macs", "macs"), ("randoms", "randoms"), ("encrypted", "bytes"),
            ):  # fmt: skip
                yield (f"dds.message.{metric}", process.recording.name, message, float(one[number]))
            message += 1


def _by_name(sites: list[Site]) -> dict[str, list[Site]]:
    named: dict[str, list[Site]] = {}
    for site in sites:
        label = f"{site.operation} {site.algorithm}: {' < '.join(site.frames)}"
        named.setdefault(label, []).append(site)
    return named
