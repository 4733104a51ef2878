# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Our plugin with the builtin ones of Cyclone DDS and Fast DDS, cell by cell: which protection, who
has ours, whether data came through in both directions, and what a capture shows.

The builtin plugins among themselves are tried first: where they fail, a cell says nothing about
ours, and is *not judgeable*.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support import cyclone, dds_probes
from support.cyclone import BUILTIN, PLAIN_SAMPLE, End, ours
from support.dds_nonces import datagrams, headers
from support.dds_probes import MARK, Pair
from warifu.dds.governance import Basic, Governance, Protection
from warifu.dds.keystore import Enclave, create

NONE, SIGN, ENCRYPT = Protection.NONE, Protection.SIGN, Protection.ENCRYPT
SIGN_ORIGIN = Protection.SIGN_WITH_ORIGIN_AUTHENTICATION
ENCRYPT_ORIGIN = Protection.ENCRYPT_WITH_ORIGIN_AUTHENTICATION

GOVERNANCE = {
    "as-sros2": Governance(),
    "all-signed": Governance(Basic.SIGN, SIGN, SIGN, SIGN, SIGN),
    "all-encrypted": Governance(Basic.ENCRYPT, ENCRYPT, ENCRYPT, ENCRYPT, ENCRYPT),
    "signed-by-origin": Governance(Basic.SIGN, SIGN_ORIGIN, SIGN_ORIGIN, SIGN_ORIGIN, SIGN_ORIGIN),
    "encrypted-by-origin": Governance(
        Basic.ENCRYPT, ENCRYPT_ORIGIN, ENCRYPT_ORIGIN, ENCRYPT_ORIGIN, ENCRYPT_ORIGIN
    ),
    "submessages-by-origin": Governance(
        Basic.ENCRYPT, ENCRYPT_ORIGIN, NONE, ENCRYPT_ORIGIN, ENCRYPT_ORIGIN
    ),
    "messages-by-origin": Governance(Basic.ENCRYPT, ENCRYPT, ENCRYPT_ORIGIN, ENCRYPT, ENCRYPT),
    "messages-alone": Governance(Basic.NONE, NONE, ENCRYPT, NONE, NONE),
    "samples-and-submessages": Governance(Basic.ENCRYPT, ENCRYPT, NONE, ENCRYPT, ENCRYPT),
    "samples-alone": Governance(Basic.ENCRYPT, NONE, NONE, NONE, NONE),
    "submessages-alone": Governance(Basic.NONE, ENCRYPT, NONE, ENCRYPT, ENCRYPT),
    "submessages-and-nothing-else": Governance(Basic.NONE, ENCRYPT, NONE, NONE, NONE),
}
"""By name; all but those that protect one thing alone protect discovery and liveliness."""

ROUND_TRIPS = 200
PATIENCE_S = 50
"""For all of them, after which a pair has failed; matching has 20 s of it."""
ISSUES = "eclipse-cyclonedds/cyclonedds#701 and #1547, eProsima/Fast-DDS#3259"
"""Where users have reported that the two middlewares' security does not interoperate."""
CONTROL = "control"
FAST_DDS, CYCLONE = b"\x01\x0f", b"\x01\x10"
"""Vendor ids, which stand in each RTPS message's header."""
TOPIC = {"cyclone": b"DDSPerfRDataKS", "fastdds": b"rt/chatter"}
"""Of each peer's program, as discovery announces it."""


@dataclass(frozen=True)
class Cell:
    """One pair that was run."""

    peer: str
    """`cyclone` or `fastdds`, always with its builtin plugin where it is not ours."""
    governance: str
    role: str
    """`control`, or what ours does: `writes`, `reads`, `both` (Cyclone), `pings`, `pongs`
    (Fast DDS, and the control has both)."""
    works: bool
    """Data came through in both directions."""
    problems: tuple[str, ...]
    """What the capture shows that it should not."""
    said: str

    @property
    def verdict(self) -> str:
        """In words."""
        if not self.works:
            return f"fails ({self.reason})"
        return "; ".join(self.problems) if self.problems else "works"

    @property
    def reason(self) -> str:
        """Of a failure, what a probe says; samples are missing where it says nothing."""
        said = [line.partition("-probe: ")[2] for line in self.said.splitlines()]
        return next((words for words in said if words), "samples are missing")


def with_cyclone(network: str, folder: Path, name: str) -> Iterator[Cell]:
    """Two ddsperf: the control, then ours at each end and at both."""
    governance = GOVERNANCE[name]
    keys = _keys(folder, ["/writer", "/reader"], governance)
    roles = {
        CONTROL: (BUILTIN, BUILTIN),
        "writes": (ours(), BUILTIN),
        "reads": (BUILTIN, ours()),
        "both": (ours(), ours()),
    }
    for role, plugins in roles.items():
        ends = (End(keys[one], plugin) for one, plugin in zip(keys, plugins, strict=True))
        outcome = cyclone.talk(network, folder / role, *ends)
        problems = wrong_on_wire(outcome.wire, governance, PLAIN_SAMPLE, TOPIC["cyclone"])
        if "rror" in outcome.writer_log + outcome.reader_log:
            problems += ("a log has an error",)
        said = f"writer:\n{outcome.writer_log[-2000:]}\nreader:\n{outcome.reader_log[-2000:]}"
        yield Cell("cyclone", name, role, outcome.works, problems, said)


def with_fast_dds(
    probes: dict[str, Path], folder: Path, name: str, key_bits: int = 256
) -> Iterator[Cell]:
    """Cyclone with Fast DDS, either of which pings: the control for both roles first. Keys of 128
    bit are Fast DDS's and ours, while Cyclone's builtin plugin keeps to 256."""
    governance = GOVERNANCE[name]
    keys = _keys(folder, ["/cyclone", "/fast"], governance)
    said = name if key_bits == 256 else f"{name}, {key_bits} bit"
    for plugin in (BUILTIN, ours(f"AES-{key_bits}-GCM")):
        for pings in ("cyclone", "fastdds"):
            does = {"cyclone": "pings", "fastdds": "pongs"}[pings]
            role = f"{CONTROL} {does}" if plugin == BUILTIN else does
            end = End(keys["/cyclone"], plugin)
            pair, wire = ping_pong(
                probes,
                folder / role.replace(" ", "-"),
                end,
                keys["/fast"],
                pings,
                fast_arguments=("--key-bits", str(key_bits)),
            )
            problems = wrong_on_wire(wire, governance, MARK, TOPIC["fastdds"])
            short = {FAST_DDS} | ({CYCLONE} if plugin != BUILTIN else set())
            if with_short_keys(wire) != (short if key_bits == 128 else set()):
                problems += ("keys have another length",)
            worked = all_came_back(pair)
            yield Cell("fastdds", said, role, worked, problems, pair.out + pair.err)


def ping_pong(
    probes: dict[str, Path],
    folder: Path,
    cyclone_end: End,
    fast: Enclave | None,
    pings: str,
    *,
    arguments: tuple[str, ...] = (),
    fast_arguments: tuple[str, ...] = (),
) -> tuple[Pair, bytes]:
    """A probe of each middleware, one of which answers, and what was captured meanwhile."""
    folder.mkdir(parents=True)
    config = folder / "cyclone.xml"
    # By configuration: no property of a participant's asks for the optional fields.
    config.write_text(cyclone.configuration(cyclone_end, dds_probes.INTERFACE))
    own: dict[str, list[str | Path]] = {
        "cyclone": [],
        "fastdds": [] if fast is None else ["--enclave", fast.folder, *fast_arguments],
    }
    common = ["--bytes", "256", "--count", str(ROUND_TRIPS), "--timeout", "20", *arguments]
    pongs = "fastdds" if pings == "cyclone" else "cyclone"
    pair = dds_probes.run(
        [probes[pings], "ping", *common, *own[pings]],
        [probes[pongs], "pong", *common, *own[pongs]],
        capture=folder / "wire.pcap",
        environment={
            "CYCLONEDDS_URI": f"file://{config}",
            "LD_LIBRARY_PATH": str(cyclone.plugins()),
        }
        | dict(cyclone_end.environment),
        seconds=PATIENCE_S,
    )
    return pair, (folder / "wire.pcap").read_bytes()


def all_came_back(pair: Pair) -> bool:
    """Each sample was answered."""
    ping = pair.reports.get("ping", {})
    return pair.code == 0 and ping.get("sent") == ping.get("received") == ROUND_TRIPS


def wrong_on_wire(
    wire: bytes, governance: Governance, sample: bytes, topic: bytes
) -> tuple[str, ...]:
    """What a capture contradicts: whether samples and announcements can be read, and whether the
    outermost crypto headers are of the kinds that the governance says."""
    problems = []
    of_samples = {governance.data, governance.metadata, governance.rtps}
    is_hidden = any(kind.startswith("ENCRYPT") for kind in of_samples)
    if (sample in wire) == is_hidden:
        problems.append("samples are in plain text" if is_hidden else "samples cannot be read")
    # Cyclone announces topics before keys are there, and then outside RTPS messages' protection,
    # with its builtin plugin as well: rtps ENCRYPT alone says nothing about announcements.
    hides_topics = governance.discovery.startswith("ENCRYPT")
    if hides_topics and topic in wire:
        problems.append("announcements are in plain text")
    if not hides_topics and not governance.rtps.startswith("ENCRYPT") and topic not in wire:
        problems.append("announcements cannot be read")
    kinds = {
        (header.site, header.kind[3] in (2, 4))
        for message in datagrams(wire)
        for header in headers(message)
        # Keys are exchanged encrypted whatever the governance says, under a key without an id.
        if header.key_id
    }
    layers = {"message": governance.rtps, "submessage": governance.metadata}
    for site, kind in layers.items():
        # Whatever is inside an encrypted RTPS message is not seen.
        if site == "submessage" and governance.rtps.startswith("ENCRYPT"):
            continue
        if kind is not NONE and (site, kind.startswith("ENCRYPT")) not in kinds:
            problems.append(f"no {site} is as {kind} has it")
    return tuple(problems)


def with_short_keys(wire: bytes) -> set[bytes]:
    """Vendors of which something is protected under AES with keys of 128 bit."""
    short = {bytes([0, 0, 0, 1]), bytes([0, 0, 0, 2])}
    return {
        message[6:8]
        for message in datagrams(wire)
        if any(header.kind in short for header in headers(message))
    }


def _keys(folder: Path, names: list[str], governance: Governance) -> dict[str, Enclave]:
    now = datetime.datetime.now(datetime.UTC)
    return create(folder / "keys", names, governance, now=now)
