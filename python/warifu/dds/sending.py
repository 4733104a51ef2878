# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Sends messages between two probes of `dds/probes`, with the profiler's library in both.

Each end has a network namespace of its own (`dds/probes/pair`), ROS 2's names and an enclave of an
SROS2 keystore. What comes back is what the sender asked of OpenSSL, message by message, and what
the reader asked of it in all.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warifu import tools
from warifu.dds import counters
from warifu.dds.counters import Count, CountersDamaged
from warifu.dds.governance import Governance
from warifu.dds.keystore import Enclave, create
from warifu.dds.middlewares import cyclone_folders
from warifu.dds.recording import Recording, RecordingDamaged, read
from warifu.files import temporary_folder

PROBES = Path(__file__).resolve().parents[3] / "dds" / "probes"
"""Their sources, in the checkout that this package is of: root runs what is there."""

_HEADERS = {
    "fastdds-probe": (
        Path("/usr/include/fastdds/dds/domain/DomainParticipant.hpp"),
        "libfastrtps-dev",
    ),
    "cyclonedds-probe": (Path("/usr/include/dds/dds.h"), "cyclonedds-dev cyclonedds-tools"),
}
_SETPRIV = "setpriv"
_PATIENCE_S = 10
"""What a pair that is told to end may take to remove its namespaces."""
_COMPILING_S = 300
"""A probe; on one slow processor that others use."""
_POLL_S = 0.1
_SILENCE_S = 20
"""The probes give up after so long without a message."""


class SendingError(Exception):
    """Two ends did not exchange what they should; its text is one line with the fix."""


@dataclass(frozen=True)
class Exchange:
    """What is sent, and how it is protected."""

    probe: str = "fastdds-probe"
    bytes: int = 16
    """Of the message's string."""
    count: int = 100
    period_us: int = 10_000
    swap: str | None = None
    """An AEAD in the place of AES-GCM, by the profiler's library: an experiment."""
    init: str | None = None
    """The function of Warifu's plugin that Cyclone DDS is to call."""
    secured: bool = True


@dataclass(frozen=True)
class Sent:
    """What the ends did."""

    exchange: Exchange
    recording: Recording
    received: int
    plugin: tuple[Count, ...] = ()
    """What Warifu's plugin counted in the sender, discovery included."""
    reader: Recording | None = None
    """What the other end asked of OpenSSL; None where nothing was secured."""
    one_way_ns: Mapping[str, int] = field(default_factory=dict)
    """From a message's sending to its receipt: `minimum`, `median`, `p90`, `p99`, `maximum`."""
    first_received_ns: int = 0
    """When the reader had its first message, on the clock of `begun_ns`."""

    @property
    def read_ns(self) -> float:
        """What the reader asks of OpenSSL to read a message, a session's key derived anew each time
        included, and discovery's messages as well, ns a message."""
        sites = () if self.reader is None else self.reader.sites
        read = [site for site in sites if any("::decode_" in frame for frame in site.frames)]
        return sum(site.numbers["ns"] for site in read) / max(self.received, 1)

    @property
    def messages(self) -> Sequence[Mapping[str, int]]:
        """Each write: `ns`, `crypto_ns`, `encryptions`, `macs`, `randoms`, `inner_updates`, ..

        Without those that began before the reader had a message: Fast DDS 2.9 counts a reader as
        matched before its keys are there, and then encrypts nothing and sends nothing."""
        written = self.recording.messages
        return [one for one in written if one["begun_ns"] >= self.first_received_ns]

    @property
    def written(self) -> int:
        """Messages, also those that began before the reader had one."""
        return len(self.recording.messages)

    def took_ns(self, operation: str) -> float:
        """Time a message in operations of this kind, ns; of all that were written."""
        totals = self.recording.totals
        before, after = totals["first_message"][operation], totals["last_message"][operation]
        return (after["in_message_ns"] - before["in_message_ns"]) / max(self.written, 1)


def missing(probe: str, command: str, probes: Path = PROBES) -> str | None:
    """What this machine lacks for a run, with the fix; None if it lacks nothing. `command` is what
    the user runs, after the program's name."""
    header, packages = _HEADERS[probe]
    if os.geteuid() != 0:
        return f"network namespaces need root: run `{tools.as_root(command)}`"
    if not (probes / "pair").is_file():
        return f"{probes} has no script `pair`: run `warifu` of a checkout"
    for program, package in (
        ("ip", "iproute2"),
        ("make", "make"),
        ("openssl", "openssl"),
        (_SETPRIV, "util-linux"),
    ):
        if not _on_path(program):
            return f"{program} is missing: `apt-get install {package}`"
    if not header.is_file():
        return f"no {header}: `apt-get install {packages}`"
    for library in ("libwarifu_evp_probe.so", "libwarifu_dds_crypto.so"):
        try:
            tools.find(library)
        except tools.ToolMissing as error:
            return str(error)
    return None


def _on_path(program: str) -> bool:
    folders = [os.environ.get("PATH", ""), *tools.SYSTEM_FOLDERS]
    return shutil.which(program, path=os.pathsep.join(folders)) is not None


@dataclass
class Sender:
    """Probes that are built and a keystore, in a folder of their own."""

    probes: Path
    folder: Path
    enclaves: Mapping[str, Enclave]
    check: Callable[[], None]
    """Called while it waits; what it raises ends the run."""
    built: set[str] = field(default_factory=set)
    runs: int = 0

    def send(self, exchange: Exchange) -> Sent:
        """One run of two processes, to its end. Raises SendingError."""
        self._build(exchange.probe)
        self.runs += 1
        folder = self.folder / f"run-{self.runs}"
        for name in ("writer", "reader"):
            # The probe's library wants a folder that nobody else may write to.
            (folder / name).mkdir(parents=True, mode=0o700)
        ends = [
            self._end("publish", "/talker", exchange, folder / "writer"),
            self._end("subscribe", "/listener", exchange, folder / "reader"),
        ]
        reports = self._pair(exchange, [*ends[0], "--with", *ends[1]])
        reader = reports.get("subscribe", {})
        received = int(reader.get("received", 0))
        if received < exchange.count:
            raise SendingError(
                f"{exchange.probe}: {received} of {exchange.count} messages of {exchange.bytes} B "
                "arrived: run it again with less else on this machine"
            )
        written, read = _recordings(folder / "writer"), _recordings(folder / "reader")
        if len(written) != 1 or written[0].numbers["messages"] != exchange.count:
            raise SendingError(
                f"{exchange.probe}: the profiler saw {len(written)} senders instead of one with "
                f"{exchange.count} messages: run it again"
            )
        times = {name: int(ns) for name, ns in reader.get("one_way_ns", {}).items()}
        sent = Sent(
            exchange, written[0], received, _plugin(folder), read[0] if read else None, times,
            _first_received_ns(folder / "reader" / "samples"),
        )  # fmt: skip
        if not sent.messages:
            raise SendingError(
                f"{exchange.probe}: all {exchange.count} messages were written before the first "
                "one arrived: run it again with more of them, or a longer period"
            )
        return sent

    def _build(self, probe: str) -> None:
        if probe in self.built:
            return
        path = self.folder / "built" / probe
        make = ["make", "-r", "--silent", "-C", str(self.probes), f"BUILD={path.parent}", str(path)]
        child = subprocess.Popen(
            make,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=tools.make_environment(),
            start_new_session=True,
        )
        _, err = _said(child, _COMPILING_S, "make", self.check)
        if child.returncode != 0:
            words = err.strip().splitlines() or ["no message"]
            raise SendingError(f"{probe} cannot be built: {words[-1]}")
        self.built.add(probe)

    def _end(self, role: str, enclave: str, exchange: Exchange, folder: Path) -> list[str]:
        """The command of an end."""
        environment = {counters.VARIABLE: str(folder / "plugin.jsonl")}
        folders = ":".join(map(str, cyclone_folders()))
        environment["LD_LIBRARY_PATH"] = ":".join(
            filter(None, (os.environ.get("LD_LIBRARY_PATH"), folders))
        )
        environment["LD_PRELOAD"] = str(self._library())
        environment["WARIFU_EVP_PROBE"] = str(folder)
        # Only who has the same swap reads what is sent.
        if exchange.swap:
            environment["WARIFU_EVP_SWAP"] = exchange.swap
        # The caller's would configure the probe as well, and can name files that root then writes.
        command = ["env", "--unset=CYCLONEDDS_URI"]
        command += [f"{name}={value}" for name, value in environment.items()]
        command += [str(self.folder / "built" / exchange.probe), role]
        for option, value in (
            ("--bytes", exchange.bytes),
            ("--count", exchange.count),
            ("--period-us", exchange.period_us),
            ("--timeout", _SILENCE_S),
            ("--samples", folder / "samples"),
        ):
            command += [option, str(value)]
        if exchange.secured:
            command += ["--enclave", str(self.enclaves[enclave].folder)]
        if exchange.init is not None:
            command += ["--crypto", f"{tools.find('libwarifu_dds_crypto.so')}:{exchange.init}"]
        return command

    def _library(self) -> Path:
        """The profiler's, by a path without spaces and colons, at which ld.so(8) ends a name."""
        link = self.folder / "libwarifu_evp_probe.so"
        if not link.is_symlink():
            link.symlink_to(tools.find(link.name))
        return link

    def _pair(self, exchange: Exchange, ends: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Runs the ends; returns what each says of itself, by role."""
        longest_s = 4 * _SILENCE_S + exchange.count * exchange.period_us / 1e6
        child = subprocess.Popen(
            # If this program is killed, the pair is told to end.
            [_SETPRIV, "--pdeathsig", "TERM", str(self.probes / "pair"), *ends],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A group of its own: Ctrl-C is for this program, which then ends all of it.
            start_new_session=True,
        )
        out, err = _said(child, longest_s, exchange.probe, self.check)
        if child.returncode != 0:
            words = [line for line in err.splitlines() if line.startswith((exchange.probe, "pair"))]
            said = (words or err.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
            raise SendingError(f"{exchange.probe}: {said}")
        lines = [line for line in out.splitlines() if line.startswith('{"probe":')]
        return {str(report["role"]): report for report in map(json.loads, lines)}


def _recordings(folder: Path) -> list[Recording]:
    """Of the processes that loaded the profiler and asked for something."""
    found = []
    for path in sorted(folder.glob("*.evp")):
        try:
            recording = read(path)
        except RecordingDamaged as error:
            raise SendingError(str(error)) from None
        if recording.numbers["messages"] or recording.sites:
            found.append(recording)
    return found


def _first_received_ns(samples: Path) -> int:
    """Of the reader's samples: when each was sent and how long it took."""
    lines = samples.read_text().splitlines()
    return min(sum(map(int, line.split())) for line in lines)


def _said(
    child: subprocess.Popen[str], longest_s: float, name: str, check: Callable[[], None]
) -> tuple[str, str]:
    """Waits for its end, and gives what it wrote; nothing of it is left behind, also where `check`
    raises. Signals themselves must raise nothing meanwhile: Popen holds a lock. Raises
    SendingError."""
    deadline = time.monotonic() + longest_s
    try:
        while time.monotonic() < deadline:
            check()
            # What came so far is kept (subprocess's own documentation).
            with contextlib.suppress(subprocess.TimeoutExpired):
                return child.communicate(timeout=_POLL_S)
        raise SendingError(f"{name}: did not end within {longest_s:.0f} s: run it again")
    finally:
        _end_group(child)


def _end_group(child: subprocess.Popen[str]) -> None:
    """Ends what still runs of a pair, which removes its namespaces."""
    if child.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_PATIENCE_S)
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _plugin(folder: Path) -> tuple[Count, ...]:
    try:
        return tuple(counters.by_site(counters.read(folder / "writer" / "plugin.jsonl")).values())
    except CountersDamaged as error:
        raise SendingError(str(error)) from None


@contextlib.contextmanager
def sender(check: Callable[[], None], probes: Path = PROBES) -> Iterator[Sender]:
    """A sender with new keys under SROS2's governance; `check` as in `Sender`. Raises SendingError,
    KeystoreError and ToolMissing; OSError where a folder cannot be made."""
    with tempfile.TemporaryDirectory(prefix="warifu-reproduce.", dir=temporary_folder()) as name:
        folder = Path(name)
        now = datetime.datetime.now(datetime.UTC)
        names = ["/talker", "/listener"]
        enclaves = create(folder / "keys", names, Governance(), now=now, days=1)
        yield Sender(probes, folder, enclaves, check)
