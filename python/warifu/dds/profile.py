# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a program encrypts, decrypts and signs with OpenSSL 3, by call site: any DDS middleware with
its security plugins, run with `libwarifu_evp_probe.so` preloaded."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warifu import tools

PROBE = "libwarifu_evp_probe.so"
FILE_VARIABLE = "WARIFU_EVP_PROBE"


class ProfileError(Exception):
    """A program cannot be profiled; the text is one line that names the cause and the fix."""


@dataclass(frozen=True)
class Site:
    """Messages that one function of one process has encrypted, decrypted, signed or verified."""

    process: int
    function: str
    """Demangled where c++filt is there; `library+0xOFFSET` where it has no symbol."""
    operation: str
    calls: int
    refused: int
    bytes: int
    """Encrypted or decrypted."""
    associated_bytes: int
    """Authenticated alone."""
    setup_ns: int
    """Initialising contexts and keys."""
    data_ns: int
    """All the rest."""


@dataclass(frozen=True)
class Profile:
    """One run of a program and of the processes that it started."""

    exit_code: int
    sites: list[Site]
    probe_ns: int
    """What the probe adds to each message: the most of all processes."""
    processes: int
    """How many ended so that the probe could write: by exit(3), not by a signal."""


def run(command: Sequence[str]) -> Profile:
    """Runs a program to its end, or to Ctrl-C, which it gets, too.

    Raises ProfileError where the program cannot be started, and ToolMissing without the probe.
    """
    probe = tools.find(PROBE)
    with tempfile.TemporaryDirectory(prefix="warifu-profile-") as name:
        file = Path(name) / "sites.jsonl"
        preloaded = os.environ.get("LD_PRELOAD", "")
        environment = {
            **os.environ,
            FILE_VARIABLE: str(file),
            "LD_PRELOAD": f"{probe} {preloaded}".strip(),
        }
        try:
            process = subprocess.Popen(list(command), env=environment)
        except OSError as error:
            raise ProfileError(
                f"{command[0]}: {error.strerror}: name a program that can be run"
            ) from None
        exit_code = _wait(process)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return _profile(exit_code, [json.loads(line) for line in lines])


def _wait(process: subprocess.Popen[bytes]) -> int:
    """The terminal's Ctrl-C reaches the program as well: it ends, and its profile is shown."""
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            code = process.wait()
            return 128 - code if code < 0 else code


def _profile(exit_code: int, rows: list[dict[str, int | str]]) -> Profile:
    probes = [int(row["probe_ns"]) for row in rows if "probe_ns" in row]
    found = [row for row in rows if "site" in row]
    names = _demangled([str(row["site"]) for row in found])
    sites = [
        Site(function=name, operation=str(row["operation"]), **{
            key: int(row[key])
            for key in ("process", "calls", "refused", "bytes", "associated_bytes", "setup_ns",
                        "data_ns")
        })
        for row, name in zip(found, names, strict=True)
    ]  # fmt: skip
    sites.sort(key=lambda site: site.setup_ns + site.data_ns, reverse=True)
    return Profile(exit_code, sites, max(probes, default=0), len(probes))


def _demangled(names: list[str]) -> list[str]:
    """C++'s names as people write them, without arguments."""
    filt = shutil.which("c++filt")
    if filt is None or not names:
        return names
    done = subprocess.run(
        [filt, "--no-params"], input="\n".join(names), capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    return lines if done.returncode == 0 and len(lines) == len(names) else names


def ended_by(exit_code: int) -> str:
    """How a program ended, in words; empty if it returned 0."""
    if exit_code == 0:
        return ""
    if exit_code > 128:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(exit_code - 128).name}"
    return f"ended with {exit_code}"
