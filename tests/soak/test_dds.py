# SPDX-License-Identifier: Apache-2.0 OR MIT
"""ddsperf at the highest rate that it holds, secured by our plugin, with sessions that end every
few seconds: nothing is lost, refused or leaked, and no nonce returns.

DDS_SECONDS says how long (3600). A sixth of that again goes to a governance that hides no crypto
header and to sessions that end twenty times a second. Beside nothing else: the two ends take two
processors. `-s` shows the figures.
"""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from support import cyclone, needs
from support.cyclone import End, ours
from support.dds_nonces import Nonces, datagrams, headers
from warifu import tools
from warifu.dds import counters
from warifu.dds.governance import Basic, Governance, Protection
from warifu.dds.keystore import Enclave, create

pytestmark = [needs.root, needs.program("ddsperf"), needs.program("tcpdump")]

SECONDS = int(os.environ.get("DDS_SECONDS", "3600"))
TRIAL_S = 10
READER_LONGER_S = 5
"""Than the writer, so that it takes all that was sent."""
CAPTURE_S = 0.25
CAPTURES = 120
"""In a run, but not nearer than..."""
CAPTURE_EVERY_S = 5.0
SAMPLE_BYTES = 64

SIGN_ORIGIN = Protection.SIGN_WITH_ORIGIN_AUTHENTICATION
ENCRYPT = Protection.ENCRYPT
NONE = Protection.NONE

GROWTH_MAX_B = 8 << 20
"""In a whole run, by the interval's upper end. Over an hour at 60,000 samples a second that is
0.04 B a sample; in the second run, with its 12,000 sessions, 700 B each, and the record of a
session's nonces alone has more (512 of 8 B). A short run shows a gross leak only."""
BEFORE_KEYS_MAX = 50
"""Submessages that may come before the keys that they are protected with, at the beginning: they
are refused, and RTPS sends them again. At full rate a thousandth of a second has more."""
SITES = tuple(counters.PROTECTS)


@dataclass(frozen=True)
class Leg:
    """One run."""

    governance: Governance
    session_s: float
    """What the busiest key's sessions are to last."""
    seconds: int
    sites: frozenset[str]
    """Whose headers a capture shows."""


LEGS = {
    "encrypted": Leg(
        Governance(Basic.ENCRYPT, ENCRYPT, NONE, ENCRYPT, ENCRYPT),
        5.0, SECONDS, frozenset({"submessage"}),
    ),
    "visible": Leg(
        Governance(Basic.ENCRYPT, SIGN_ORIGIN, SIGN_ORIGIN, ENCRYPT, ENCRYPT),
        0.05, max(SECONDS // 6, 30), frozenset({"payload", "submessage", "message"}),
    ),
}  # fmt: skip


@dataclass
class Run:
    """What was seen of one."""

    writer_log: str
    reader_log: str
    codes: tuple[int | None, int | None]
    counts: dict[str, dict[str, counters.Count]]
    """By end, then by function."""
    datagrams_lost: int
    seconds: float
    memory_kib: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    looked_s: list[float] = field(default_factory=list)
    """When the wire was captured."""

    @property
    def received(self) -> int:
        """Samples that the reader took; none if it missed one."""
        totals = re.findall(r"size \d+ total (\d+) lost (\d+)", self.reader_log)
        assert totals, self.said()
        assert totals[-1][1] == "0", self.said()
        return int(totals[-1][0])

    def calls(self, function: str) -> int:
        """Of both ends."""
        return sum(of[function].calls for of in self.counts.values() if function in of)

    def refused(self) -> dict[str, int]:
        """By end, function and cause, where there was one."""
        return {
            f"{end} {site} {cause}": count
            for end, of in self.counts.items()
            for site, one in of.items()
            for cause, count in one.refused.items()
            if count
        }

    def blocks_a_second(self) -> float:
        """Of the function that protects most; each has a key of its own. 16 B each, and a tag."""
        return max(
            (one.bytes // 16 + 2 * one.calls) / self.seconds
            for of in self.counts.values()
            for site, one in of.items()
            if site in SITES
        )

    def said(self) -> str:
        """The ends' last words."""
        return f"writer:\n{self.writer_log[-1500:]}\nreader:\n{self.reader_log[-1500:]}"


@pytest.fixture(scope="module")
def network() -> Iterator[str]:
    with cyclone.network() as name:
        yield name


@pytest.mark.parametrize("name", LEGS)
def test_highest_rate_with_sessions_renewed(network: str, tmp_path: Path, name: str) -> None:
    leg = LEGS[name]
    now = datetime.datetime.now(datetime.UTC)
    keys = create(tmp_path / "keys", ["/writer", "/reader"], leg.governance, now=now)
    trial = run(network, tmp_path / "trial", keys, TRIAL_S, 1 << 32)
    blocks = round(trial.blocks_a_second() * leg.session_s)
    assert blocks > 0, trial.said()
    nonces = Nonces(blocks)
    whole = run(network, tmp_path / "whole", keys, leg.seconds, blocks, nonces)
    show(name, whole, nonces)

    assert whole.codes == (0, 0), whole.said()
    assert whole.received > leg.seconds
    early = {f"{end} preprocess_secure_submsg unknown_key" for end in whole.counts}
    refused = whole.refused()
    assert refused.keys() <= early, refused
    assert sum(refused.values()) <= BEFORE_KEYS_MAX, refused
    check_counts(whole)
    assert nonces.problems == []
    assert leg.sites <= {key.site for key in nonces.keys.values()}
    renewals = nonces.busiest().last_session
    assert renewals > 0, "no session has ended"
    lasted_s = (whole.looked_s[-1] - whole.looked_s[0]) / renewals
    # The rate is the trial's only roughly.
    assert leg.session_s / 3 <= lasted_s <= leg.session_s * 3, f"sessions lasted {lasted_s} s"
    for key in nonces.keys.values():
        # Also of what was not captured: counts go on across sessions. A tenth for the mean length
        # of the messages that were seen, by which all between captures are reckoned.
        protected = (key.last_count + 1) * key.blocks / key.seen
        assert protected <= 1.1 * (key.last_session + 1) * blocks, key
    for end, memory in whole.memory_kib.items():
        low_b, high_b = growth_b_per_s(memory)
        said = f"{end} grows by {low_b:.0f} to {high_b:.0f} B/s"
        assert high_b * leg.seconds <= GROWTH_MAX_B, said


def run(
    network: str,
    folder: Path,
    keys: dict[str, Enclave],
    seconds: int,
    blocks: int,
    nonces: Nonces | None = None,
) -> Run:
    """Lets ddsperf write as fast as it can, and looks at the wire now and then."""
    folder.mkdir()
    before = lost(network)
    reader = start(network, folder, "reader", keys, seconds + READER_LONGER_S, blocks, ["sub"])
    mode = ["-Qinitwait:10", "pub", "size", str(SAMPLE_BYTES)]
    writer = start(network, folder, "writer", keys, seconds, blocks, mode)
    ends = {"writer": writer, "reader": reader}
    memory: dict[str, list[tuple[float, int]]] = {end: [] for end in ends}
    try:
        begin = time.monotonic()
        every = max(CAPTURE_EVERY_S, seconds / CAPTURES)
        following, looked = begin + every / 2, []
        # The reader outlives the writer; one that ended would not be seen to grow.
        while writer.poll() is None and reader.poll() is None:
            assert time.monotonic() - begin < seconds + 60, f"{folder}: it does not end"
            for end, process in ends.items():
                memory[end].append((time.monotonic() - begin, resident_kib(process.pid)))
            if nonces is not None and time.monotonic() > following:
                looked.append(time.monotonic() - begin)
                look(network, folder / "wire.pcap", nonces)
                following = time.monotonic() + every
            time.sleep(1)
        codes = (writer.wait(60), reader.wait(60))
    finally:
        for process in ends.values():
            process.kill()
            process.wait()
    return Run(
        *((folder / f"{end}.log").read_text(errors="replace") for end in ends),
        codes=codes,
        counts={end: counters.by_site(counters.read(folder / f"{end}.jsonl")) for end in ends},
        datagrams_lost=lost(network) - before,
        seconds=seconds,
        memory_kib=memory,
        looked_s=looked,
    )


def start(
    network: str,
    folder: Path,
    name: str,
    keys: dict[str, Enclave],
    seconds: int,
    blocks: int,
    mode: Sequence[str],
) -> subprocess.Popen[bytes]:
    file = folder / f"{name}.xml"
    file.write_text(cyclone.configuration(End(keys[f"/{name}"], ours())))
    available = sorted(os.sched_getaffinity(0))
    processor = available[0] if name == "writer" else available[-1]
    command = ["taskset", "-c", str(processor), tools.find("ddsperf"), "-D", str(seconds)]
    environment = {
        counters.VARIABLE: str(folder / f"{name}.jsonl"),
        "WARIFU_DDS_MAX_BLOCKS_PER_SESSION": str(blocks),
    }
    log = folder / f"{name}.log"
    return cyclone.start(network, file, log, [*command, "-Qminmatch:1", *mode], environment.items())


def look(network: str, file: Path, nonces: Nonces) -> None:
    """Captures for a moment."""
    with cyclone.captured(network, file):
        time.sleep(CAPTURE_S)
    nonces.add(header for message in datagrams(file.read_bytes()) for header in headers(message))
    file.unlink()


def lost(network: str) -> int:
    """Datagrams that the namespace's sockets had no place for, since it was made."""
    ip = tools.find("ip")
    said = subprocess.run(
        [ip, "netns", "exec", network, "cat", "/proc/net/snmp"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    names, values = (line.split() for line in said.splitlines() if line.startswith("Udp:"))
    return int(dict(zip(names, values, strict=True))["RcvbufErrors"])


def resident_kib(pid: int) -> int:
    """VmRSS (proc_pid_status(5)); 0 of one that is ending."""
    try:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def growth_b_per_s(memory: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """The interval at 95 % of the slope, behind the first quarter of a run, in which buffers fill.

    Of twenty means: single readings depend on those before."""
    kept = [(at, kib * 1024) for at, kib in memory if at > memory[-1][0] / 4 and kib]
    parts = [np.mean(part, axis=0) for part in np.array_split(np.array(kept), min(20, len(kept)))]
    fit = stats.linregress(*np.array(parts).T)
    half = stats.t.ppf(0.975, len(parts) - 2) * fit.stderr
    return fit.slope - half, fit.slope + half


def check_counts(whole: Run) -> None:
    """What was encoded has been decoded."""
    received = whole.received
    sent, read = (whole.calls(f"{what}_serialized_payload") for what in ("encode", "decode"))
    assert read >= received, "each sample was decrypted"
    if whole.datagrams_lost == 0:
        assert sent == read == received, (sent, read, received)
    # Messages to all that a datagram lost are sent again, which is a call at one end alone.
    assert sent >= read
    both = ("datawriter_submessage", "datareader_submessage")
    encoded, decoded = (
        sum(whole.calls(f"{what}_{kind}") for kind in both) for what in ("encode", "decode")
    )
    # The writer's end leaves first: it does not hear the last of what the reader says.
    assert encoded >= decoded, (encoded, decoded)
    if whole.datagrams_lost == 0:
        assert encoded - decoded <= 0.001 * encoded + 100, (encoded, decoded)


def show(name: str, whole: Run, nonces: Nonces) -> None:
    """Prints the figures."""
    seen = sum(key.seen for key in nonces.keys.values())
    print(
        f"\n{name}: {whole.received:,} samples in {whole.seconds:.0f} s "
        f"({whole.received / whole.seconds:,.0f}/s), {whole.datagrams_lost} datagrams lost; "
        f"{seen:,} crypto headers of {len(nonces.keys)} keys seen, {nonces.repeated} octet by "
        f"octet twice"
    )
    for key in nonces.keys.values():
        print(
            f"  {key.site} key: {key.last_session + 1:,} sessions, {key.last_count + 1:,} nonces, "
            f"at most {key.fullest:,} of {nonces.most_blocks:,} blocks seen in one session"
        )
    for function in ("serialized_payload", "datawriter_submessage", "datareader_submessage",
                     "rtps_message"):  # fmt: skip
        sent, read = (whole.calls(f"{what}_{function}") for what in ("encode", "decode"))
        print(f"  {function}: {sent:,} encoded, {read:,} decoded")
    for end, memory in whole.memory_kib.items():
        low_b, high_b = growth_b_per_s(memory)
        least, most = (of(kib for _, kib in memory if kib) / 1024 for of in (min, max))
        print(
            f"  {end}: {least:.1f} to {most:.1f} MiB, {low_b:+.0f} to {high_b:+.0f} B/s "
            f"({len(memory)} readings)"
        )
