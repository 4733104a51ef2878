# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs a command with the probe loaded, and says what its processes asked of OpenSSL 3."""

from __future__ import annotations

import contextlib
import mmap
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

from warifu.dds import counters
from warifu.dds.counters import Count, CountersDamaged
from warifu.dds.recording import Recording, RecordingDamaged, Site, read
from warifu.tools import find

SWAPS = ("aegis-128l", "aegis-256", "ascon-aead128")
"""What `--swap` takes (dds/evp-probe/src/swap.rs)."""

_LOOKS_EVERY_S = 0.5
#: Ctrl-C so often ends a command that does not heed it.
_PATIENCE = 3
#: siginfo_t's si_code of what the terminal sends to every process of its group.
_OF_KERNEL = 0x80

_PLUGIN_NAMES = (b"DDS:Crypto:AES-GCM-GMAC", b"builtin.AES-GCM-GMAC", b"dds_security_crypto")
"""In every implementation of DDS Security: the builtin plugin's class id (DDS Security 1.1, 9.5.1),
Fast DDS's name for it (SecurityPluginFactory.cpp), Cyclone DDS's library (q_security.h)."""

_MIDDLEWARE = (
    (r"libfastrtps\.so\.?(?P<version>[\d.]*)", "Fast DDS"),
    (r"libfastdds\.so\.?(?P<version>[\d.]*)", "Fast DDS"),
    (r"libddsc\.so\.?(?P<version>[\d.]*)", "Cyclone DDS"),
    (r"libnddsc\.so\.?(?P<version>[\d.]*)", "RTI Connext"),
    (r"libOpenDDS_Dcps\.so\.?(?P<version>[\d.]*)", "OpenDDS"),
)
#: Libraries with cryptography of their own, which the probe does not see.
_OTHERS = r"libcrypto(-\w+)?\.so\.1|libmbedcrypto|libwolfssl|libgnutls|libsodium|libgcrypt"


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
        found = _middleware(self.libraries)
        return found[0] if found else None

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
        return (calls + numbers["messages"] * numbers["message_cost_ps"]) / 1000


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
    with tempfile.TemporaryDirectory(prefix="warifu-dds-profile.") as name:
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
        for path in folder.glob("*.evp"):
            pid = int(path.name.split("-", 1)[0])
            with contextlib.suppress(OSError):
                maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
                paths = re.findall(r"(/\S+\.so[.\d]*)$", maps, re.MULTILINE)
                seen.setdefault(pid, set()).update(filter(_telling, paths))


def _telling(path: str) -> bool:
    name = Path(path).name
    named = any(re.match(pattern, name) for pattern, _ in _MIDDLEWARE)
    other = re.match(_OTHERS, name) is not None
    return named or other or name.startswith(("libcrypto", "libdds_security", "libwarifu_dds"))


def _recordings(folder: Path) -> tuple[list[Recording], list[str]]:
    found, notes = [], []
    by_number = sorted(folder.glob("*.evp"), key=lambda path: tuple(map(int, path.stem.split("-"))))
    for path in by_number:
        try:
            recording = read(path)
        except RecordingDamaged as error:
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
    except CountersDamaged as error:
        return {}, [str(error)]
    found: dict[int, list[Count]] = {}
    for one in counts:
        found.setdefault(one.process, []).append(one)
    return {pid: tuple(counters.by_site(own).values()) for pid, own in found.items()}, []


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _middleware(libraries: Sequence[str]) -> tuple[str, Path] | None:
    for path in libraries:
        for pattern, name in _MIDDLEWARE:
            match = re.match(pattern, Path(path).name)
            if match:
                # The file behind the link has the whole version.
                real = os.path.realpath(path)
                whole = re.match(pattern, Path(real).name) or match
                return f"{name} {whole['version']}".strip(), Path(real)
    return None


def verdict(process: Process) -> str:
    """What a user of DDS Security wants to know of a process first, in a sentence or two."""
    found = _middleware(process.libraries)
    if process.plugin:
        return _by_plugin(process, found[0] if found else "A middleware that is not known here")
    if process.encrypts:
        return _secured(process, found[0] if found else None)
    if found is None:
        return "Loaded no DDS middleware that is known here, and encrypted nothing by OpenSSL 3."
    name, path = found
    published = _count(process.messages, "message")
    if not has_security(path):
        return (
            f"NO SECURITY: this {name} was built without DDS Security; {published} published in "
            f"plain text. Take a build that has it, such as Debian's or ROS 2's own packages."
        )
    other = _other_cryptography(process.libraries)
    if process.recording.numbers["foreign_calls"]:
        other = other or "an OpenSSL that is not OpenSSL 3"
    if other:
        return _unseen(name, other, process.messages)
    return (
        f"NO SECURITY: {name} could, and this program does not ask for it; {published} published "
        "in plain text. Make keys with `warifu dds keystore`; for ROS 2 set "
        "ROS_SECURITY_ENABLE=true, ROS_SECURITY_STRATEGY=Enforce and ROS_SECURITY_KEYSTORE."
    )


def _by_plugin(process: Process, name: str) -> str:
    """Of Warifu's own plugin, which asks nothing of OpenSSL."""
    aead = process.plugin[0].aead
    counts = {one.site: one for one in process.plugin}
    protected = {what: counts[site] for site, what in counters.PROTECTS.items() if site in counts}
    refused = sum(sum(one.refused.values()) for one in process.plugin)
    said = f"{name} with Warifu's plugin ({aead})"
    if not process.messages:
        read = sum(one.calls for site, one in counts.items() if site not in counters.PROTECTS)
        return (
            f"{said}: published no message that the probe knows; the plugin was called "
            f"{sum(one.calls for one in protected.values()):,} times to protect and {read:,} times "
            f"to read, and refused {refused:,}."
        )
    each = [f"{one.calls / process.messages:.2f} {what}" for what, one in protected.items()]
    took_us = sum(one.time_ns for one in protected.values()) / process.messages / 1000
    return (
        f"{said}: {process.messages:,} messages, and for each {_and(each) or 'nothing'} protected "
        f"in {took_us:.1f} us, discovery included; {refused:,} refused."
    )


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _unseen(name: str, other: str, messages: int) -> str:
    return (
        f"NOT SEEN: {name} encrypted no message by OpenSSL 3, and has loaded {other}, which the "
        f"probe does not see; {_count(messages, 'message')} published."
    )


def _secured(process: Process, middleware: str | None) -> str:
    name = middleware or "No DDS middleware that is known here"
    if not process.messages:
        return (
            f"{name}: {process.count('encrypt'):,} encryptions, "
            f"{process.count('decrypt'):,} decryptions and {process.count('mac'):,} MACs; "
            "published no message that the probe knows."
        )
    messages = process.messages
    flows = {kind: process.while_messages(kind) for kind in process.recording.totals["now"]}
    each = {kind: flow["operations"] / messages for kind, flow in flows.items()}
    # Fewer than every second is no protection of messages: discovery, heartbeats, keys.
    if each["encrypt"] < 0.5 and each["mac"] < 0.5:
        other = _other_cryptography(process.libraries)
        if other:
            return _unseen(name, other, messages)
        return (
            f"NOT PROTECTED: {name} authenticated its peers, and its governance has no message "
            f"encrypted or signed ({messages:,} published): change it with `warifu dds keystore`."
        )
    said = "" if each["encrypt"] >= 0.5 else "SIGNED, NOT ENCRYPTED: "
    inside = sum(flow["in_message_ns"] for flow in flows.values())
    elsewhere = sum(flow["ns"] for flow in flows.values()) - inside
    written = process.recording.numbers["messages_ns"]
    share = f" ({inside / written:.0%})" if written else ""
    return (
        f"{said}{name}: {messages:,} messages, each {each['encrypt']:.2f} encryptions, "
        f"{each['mac']:.2f} MACs and {each['random']:.2f} requests for random bytes: "
        f"{inside / messages / 1000:.1f} us of the {written / messages / 1000:.1f} us that a write "
        f"takes{share}, and {max(elsewhere, 0) / messages / 1000:.1f} us in other threads."
    )


def has_security(library: Path) -> bool:
    """Whether a middleware's library holds the builtin plugin, or its name, as those do that load
    it (Cyclone DDS)."""
    try:
        with (
            library.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return any(content.find(name) >= 0 for name in _PLUGIN_NAMES)
    except (OSError, ValueError):
        # What cannot be read is not judged.
        return True


def _other_cryptography(libraries: Sequence[str]) -> str | None:
    names = [Path(path).name for path in libraries]
    own = [name for name in names if name.startswith("libwarifu_dds_crypto")]
    others = [name for name in names if re.match(_OTHERS, name)]
    return " and ".join(own or others) or None


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'} {'was' if number == 1 else 'were'}"
