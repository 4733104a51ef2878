# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs a command with the probe loaded, and says what its processes asked of OpenSSL 3."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warifu.dds import counters, middlewares
from warifu.dds.counters import Count, CountersDamaged
from warifu.dds.recording import Recording, RecordingDamaged, Site, read
from warifu.files import temporary_folder
from warifu.tools import find

SWAPS = ("aegis-128l", "aegis-256", "ascon-aead128")
"""What `--swap` takes (dds/evp-probe/src/swap.rs)."""

#: A recording's name: process and number (dds/evp-probe/src/record.rs).
_NAME = re.compile(r"(\d{1,10})-(\d{1,4})\.evp")
#: As many as the probe makes in a folder (RECORDINGS).
_MOST_PROCESSES = 500

_LOOKS_EVERY_S = 0.5
#: Ctrl-C so often ends a command that does not heed it.
_PATIENCE = 3
#: siginfo_t's si_code of what the terminal sends to every process of its group.
_OF_KERNEL = 0x80


class ProfileError(Exception):
    """The command cannot be run, or not be watched; its text is one line."""


@dataclass(frozen=True)
class Process:
    """A process that loaded a DDS middleware, or asked something of OpenSSL 3."""

    recording: Recording
    libraries: tuple[str, ...]
    """Those that were seen loaded, by the probe or in /proc."""
    plugin: tuple[Count, ...] = ()
    """What Warifu's cryptographic plugin counted in it, by function."""

    @property
    def name(self) -> str:
        """Its program and process id."""
        return f"{self.recording.name} ({self.recording.numbers['pid']})"

    @property
    def messages(self) -> int:
        """Published."""
        return self.recording.numbers["messages"]

    @property
    def sites(self) -> list[Site]:
        """Those that are not OpenSSL's own."""
        return [site for site in self.recording.sites if not site.of_openssl]

    def count(self, *operations: str) -> int:
        """Operations of these kinds that the program, not OpenSSL itself, asked for."""
        return sum(site.count for site in self.sites if site.operation in operations)

    @property
    def encrypts(self) -> bool:
        """Whether anything was encrypted, decrypted or authenticated."""
        return self.count("encrypt", "decrypt", "mac") > 0

    @property
    def middleware(self) -> str | None:
        """Its name and version, as the library's file says."""
        found = middlewares.found(self.libraries)
        return found[0] if found else None

    @property
    def asked(self) -> bool:
        """Whether its middleware made use of cryptography at all, if only of random keys, or of
        certificates that it then refused."""
        frames = [frame for site in self.sites for frame in site.frames]
        if self.loads_plugins or any(map(middlewares.is_part, frames)):
            return True
        # OpenSSL checks certificates by itself; of its callers only the next few are known.
        checked = any(one.operation == "verify" for one in self.recording.sites)
        return checked and not frames

    @property
    def loads_plugins(self) -> bool:
        """Whether it has loaded plugins of DDS Security, which Cyclone DDS does where its
        configuration asks for security, and only there."""
        names = (Path(path).name for path in self.libraries)
        return any(name.startswith(("libdds_security", "libwarifu_dds")) for name in names)

    def while_messages(self, operation: str) -> Mapping[str, int]:
        """Totals from the first message's beginning to the last one's end."""
        totals = self.recording.totals
        before, after = totals["first_message"][operation], totals["last_message"][operation]
        return {name: after[name] - before[name] for name in after}

    def before_messages(self, operation: str) -> Mapping[str, int]:
        """Totals until the first message; all of them where there was none."""
        stand = "first_message" if self.messages else "now"
        return self.recording.totals[stand][operation]

    @property
    def own_cost_ns(self) -> float:
        """What the probe added to this process, by what it measured there before it began."""
        numbers = self.recording.numbers
        calls = numbers["calls"] * numbers["call_cost_ps"]
        writes = numbers["messages"] + numbers["flushes"]
        return (calls + writes * numbers["message_cost_ps"]) / 1000


@dataclass(frozen=True)
class Profile:
    """What a command did."""

    command: tuple[str, ...]
    code: int
    """Its exit code, 128 and the signal's number if one ended it."""
    interrupted: bool
    seconds: float
    cpu_seconds: float
    """Of all its processes that have ended."""
    processes: tuple[Process, ...]
    loaded: int
    """Processes that the probe was loaded by."""
    notes: tuple[str, ...]


def run(command: Sequence[str], swap: str | None = None) -> Profile:
    """Runs a command to its end. Ctrl-C and SIGTERM end the command, not this.

    What it prints on stdout goes to stderr. Raises ProfileError and ToolMissing; OSError where a
    folder cannot be made.
    """
    if platform.machine() != "x86_64":
        # The probe's entries are written for its calling convention.
        raise ProfileError(f"the probe is for x86-64, and this is {platform.machine()}")
    library = find("libwarifu_evp_probe.so")
    with tempfile.TemporaryDirectory(prefix="warifu-dds-profile.", dir=temporary_folder()) as name:
        folder = Path(name)
        environment = _environment(library, folder, swap)
        counted = folder / "plugin.jsonl"
        # A file that the user has named is the user's.
        environment.setdefault(counters.VARIABLE, str(counted))
        began, used = time.monotonic(), _cpu_seconds()
        seen: dict[int, set[str]] = {}
        with _signals():
            child = _start(command, environment)
            interrupted = _wait(child, folder, seen)
        code = child.returncode if child.returncode >= 0 else 128 - child.returncode
        seconds, cpu = time.monotonic() - began, _cpu_seconds() - used
        recordings, notes = _recordings(folder)
        plugin, more = _plugin(counted, environment[counters.VARIABLE])
        notes += more
    # A process that executes another program has a file for each: what was seen is the last one's.
    last = {one.numbers["pid"]: one for one in recordings}
    processes = []
    for one in recordings:
        pid = one.numbers["pid"]
        mapped = seen.get(pid, set()) if last[pid] is one else set()
        own = plugin.get(pid, ()) if last[pid] is one else ()
        processes.append(Process(one, tuple(sorted(mapped.union(one.libraries))), own))
    told = [one for one in processes if one.middleware or one.encrypts or one.messages]
    told.sort(key=lambda one: -one.messages)
    return Profile(
        tuple(command), code, interrupted, seconds, cpu, tuple(told), len(recordings), tuple(notes)
    )


def _environment(library: Path, folder: Path, swap: str | None) -> dict[str, str]:
    # ld.so(8) takes spaces and colons for the end of a name.
    if re.search(r"[\s:]", str(library)):
        link = folder / library.name
        link.symlink_to(library)
        library = link
    environment = dict(os.environ)
    before = environment.get("LD_PRELOAD")
    environment["LD_PRELOAD"] = f"{library}:{before}" if before else str(library)
    environment["WARIFU_EVP_PROBE"] = str(folder)
    environment.pop("WARIFU_EVP_SWAP", None)
    if swap is not None:
        environment["WARIFU_EVP_SWAP"] = swap
    return environment


_WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Signals wait until `_wait` takes them, so that none is lost between two looks."""
    # An ignored or unset SIGCHLD is not queued.
    handler = signal.signal(signal.SIGCHLD, lambda *_: None)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, handler)


def _start(command: Sequence[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)

    try:
        # One thread runs here, so that nothing but this happens between fork and exec.
        return subprocess.Popen(
            list(command),
            env=environment,
            stdout=sys.stderr.fileno(),
            preexec_fn=unblock,
        )
    except FileNotFoundError:
        raise ProfileError(
            f"{command[0]}: no such program: name one that is on PATH, or its path"
        ) from None
    except PermissionError:
        raise ProfileError(f"{command[0]}: may not be executed: chmod +x") from None
    except OSError as error:
        raise ProfileError(f"{command[0]}: {error.strerror}") from None


def _wait(child: subprocess.Popen[bytes], folder: Path, seen: dict[int, set[str]]) -> bool:
    """Until the child has ended; returns whether it was asked to."""
    asked = 0
    while child.poll() is None:
        _look(folder, seen)
        got = signal.sigtimedwait(_WATCHED, _LOOKS_EVERY_S)
        if got is None or got.si_signo == signal.SIGCHLD:
            continue
        asked += 1
        _look(folder, seen)
        if asked >= _PATIENCE:
            child.kill()
        elif got.si_code != _OF_KERNEL:
            # A terminal has sent its Ctrl-C to the command as well.
            child.send_signal(got.si_signo)
    return asked > 0


def _look(folder: Path, seen: dict[int, set[str]]) -> None:
    """Which libraries the recorded processes have loaded, of those that still run: a process that
    a signal ends does not say it itself."""
    with contextlib.suppress(OSError):
        for name in filter(None, (_NAME.fullmatch(path.name) for path in folder.iterdir())):
            pid = int(name[1])
            with contextlib.suppress(OSError):
                maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
                paths = re.findall(r"(/\S+\.so[.\d]*)$", maps, re.MULTILINE)
                seen.setdefault(pid, set()).update(filter(_telling, paths))


def _telling(path: str) -> bool:
    name = Path(path).name
    named = middlewares.is_part(name) or middlewares.is_other_cryptography(name)
    return named or name.startswith("libcrypto")


def _recordings(folder: Path) -> tuple[list[Recording], list[str]]:
    found: list[Recording] = []
    notes: list[str] = []
    # The command can put anything there.
    names = {path: _NAME.fullmatch(path.name) for path in folder.iterdir()}
    numbered = {path: (int(name[1]), int(name[2])) for path, name in names.items() if name}
    paths = sorted(numbered, key=lambda path: numbered[path])
    # Other entries of the folder count as well, such as the plugin's counters.
    if len(names) >= _MOST_PROCESSES:
        notes.append(
            f"{len(paths):,} programs were recorded, and those that were started after them were "
            "not: profile a command that starts fewer."
        )
    for path in paths[:_MOST_PROCESSES]:
        try:
            recording = read(path)
        except (RecordingDamaged, OSError) as error:
            notes.append(str(error))
            continue
        # A process that was ended while it started has counted nothing.
        if recording.numbers["begun_ns"]:
            found.append(recording)
    return found, notes


def _plugin(file: Path, named: str) -> tuple[dict[int, tuple[Count, ...]], list[str]]:
    """What our plugin counted, by process."""
    if named != str(file):
        remark = (
            f"{counters.VARIABLE} is set: what Warifu's plugin counts goes to {named}, and is not "
            "shown here; unset it to see it."
        )
        return {}, [remark]
    try:
        counts = counters.read(file)
    except (CountersDamaged, OSError) as error:
        return {}, [str(error)]
    found: dict[int, list[Count]] = {}
    for one in counts:
        found.setdefault(one.process, []).append(one)
    return {pid: tuple(counters.by_site(own).values()) for pid, own in found.items()}, []


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
