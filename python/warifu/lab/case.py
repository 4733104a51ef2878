# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A case as the lab reads it: from the canonical JSON that both halves share."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

THIS_HOST = "this-host"
"""The device profile that stands for the machine the lab runs on."""

SOFTWARE = "software"
"""The key-store profile of a key in memory."""

CERTIFICATE_BYTES: dict[tuple[str, int], tuple[int, ...]] = {
    ("ecdsa_secp256r1", 1): (486,),
    ("ecdsa_secp256r1", 2): (496, 455),
    ("ecdsa_secp256r1", 3): (496, 465, 455),
    ("rsa-2048", 1): (882,),
    ("rsa-2048", 2): (892, 851),
    ("rsa-2048", 3): (892, 861, 851),
}
"""DER sizes of the chains that `warifu-tls pki` makes for either end, leaf first; as in
`crates/core/model/src/certificates.rs`, from which a study that states none has them."""

MAX_TRIALS_A_PART = 1_000
"""Trials after which a cell's progress is kept."""

PART_SECONDS = 240
"""Time after which a slow cell's progress is kept, about: connections that come one after the other
over a slow link take seconds each."""

LEFT_BYTES = 1_000
"""More than what a connection that has ended still sends each way: a close_notify alert, FINs and
their acknowledgements, and the same once more where one was lost."""


@dataclass(frozen=True)
class Stack:
    """The protocols and their settings; names as in `crates/core/model/src/case.rs`."""

    protocol: str
    tls: str
    session: str
    authentication: str
    group: str
    certificate: str
    chain_length: int
    server_certificate_bytes: tuple[int, ...]
    client_certificate_bytes: tuple[int, ...]
    cipher_suite: str
    key_share: str
    server_name: str | None
    kernel: str
    congestion_control: str
    initcwnd: int
    nagle: bool

    @staticmethod
    def parse(value: dict[str, Any]) -> Stack:
        """From a canonical case's `stack` of TLS over TCP; KeyError if it lacks a key that the lab
        knows."""
        tls, tcp = dict(value["tls"]), dict(value["tcp"])
        flat = {**tls, **tcp, "protocol": value["protocol"], "tls": tls["version"]}
        flat["kernel"] = tcp["device"] if tcp["device"] == tcp["server"] else tcp["server"]
        known = {name: flat[name] for name in Stack.__dataclass_fields__}
        lists = {name: tuple(one) for name, one in known.items() if isinstance(one, list)}
        return Stack(**known | lists)

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier connection must have been made."""
        return self.session != "full"

    @property
    def is_mutual(self) -> bool:
        """Whether the client shows a certificate."""
        return self.authentication == "mutual"


@dataclass(frozen=True)
class Case:
    """One cell of a study, as far as the lab needs it."""

    case_id: str
    canonical: str
    label: str
    device: str
    server: str
    key_store: str
    session_open: bool
    link: dict[str, Any]
    stack: Stack
    path: str
    response_body_bytes: int
    concurrent: int
    workers: int = 1

    @property
    def rtt_ns(self) -> int:
        """Propagation delay there and back."""
        return int(self.link["rtt"])

    @property
    def is_lossy(self) -> bool:
        """Whether the link may lose a packet."""
        return bool(self.link["loss"]["kind"] != "none")

    @property
    def has_memory(self) -> bool:
        """Whether what one packet meets on the link depends on those before it, another
        connection's among them: a queue before a rate, jitter that keeps the order, bursts of loss.

        A case is one connection with the link to itself, so two must not be on the way at once.
        """
        link = self.link
        limited = link["rate_up"] is not None or link["rate_down"] is not None
        in_turn = bool(link["keep_order"]) and max(link["jitter"], default=0) > 0
        return limited or in_turn or bool(link["loss"]["kind"] == "gilbert_elliott")

    @property
    def settling_ns(self) -> int:
        """Time after which nothing of a connection that has ended is left on the link: its FINs
        there and back behind all the jitter, and a queue of `LEFT_BYTES` each way."""
        link = self.link
        jitter: int = max(link["jitter"], default=0)
        both = (link["rate_up"], link["rate_down"])
        rates: list[int] = [rate for rate in both if rate is not None]
        queues = sum(LEFT_BYTES * 8 * 1_000_000_000 // rate for rate in rates)
        return 2 * (self.rtt_ns + 2 * jitter) + queues

    @staticmethod
    def parse(case_id: str, canonical: str, label: str) -> Case:
        """From a case's canonical JSON; KeyError if it lacks a key that the lab knows."""
        value = json.loads(canonical)
        return Case(
            case_id=case_id,
            canonical=canonical,
            label=label,
            device=value["device"]["profile"],
            server=value["server"]["profile"],
            key_store=value["key_store"]["profile"],
            session_open=value["key_store"]["session_open"],
            link=value["link"],
            stack=Stack.parse(value["stack"]),
            path=value["pattern"]["path"],
            response_body_bytes=value["pattern"]["response_body"],
            concurrent=value["pattern"]["concurrent"],
            # The canonical form leaves a single one out.
            workers=value["server"].get("workers", 1),
        )


def why_not_measurable(case: Case, stand_ins: Collection[str] = ()) -> str | None:
    """Why the lab cannot run a case, with the mend; None if it can.

    The lab's two machines are both this one, with its kernel; its key store is OpenSSL's own or one
    that a virtual card stands in for, and its certificates are those that `warifu-tls pki` makes.
    """
    for key, name in (("device", case.device), ("server", case.server)):
        if name != THIS_HOST:
            return (
                f"{key} is {name}: the lab's {key} is this machine; "
                f'only `{key} = "{THIS_HOST}"` can be measured here'
            )
    if case.key_store != SOFTWARE and case.key_store not in stand_ins:
        return (
            f"key_store is {case.key_store}: its profile names no virtual card that stands in for "
            f'it; add [stand_in] card = "NAME" to the profile, or choose key_store = "{SOFTWARE}"'
        )
    if case.key_store != SOFTWARE and case.stack.certificate != "ecdsa_secp256r1":
        return (
            f"stack.certificate is {case.stack.certificate}: the key of {case.key_store} is on "
            'P-256; only `certificate = "ecdsa_secp256r1"` can be measured with it'
        )
    if case.stack.protocol != "https":
        return f"stack.protocol is {case.stack.protocol}: the lab runs https alone"
    if case.concurrent != 1:
        return (
            f"pattern.concurrent is {case.concurrent}: the lab's connections do not wait for one "
            "another; only `concurrent = 1` can be measured"
        )
    if case.workers != 1:
        return (
            f"server.workers is {case.workers}: the lab's nginx has one worker on a processor of "
            "its own; only `server.workers = 1` can be measured"
        )
    if not 576 <= case.link["mtu"] <= 65_535:
        return f"link.mtu is {case.link['mtu']}: the lab's link takes 576 to 65535"
    return _other_certificates(case.stack) or _other_kernel(case.stack.kernel)


def _other_certificates(stack: Stack) -> str | None:
    """Why the lab's own certificates are not the case's; None if they are."""
    ours = CERTIFICATE_BYTES.get((stack.certificate, stack.chain_length), ())
    chains = {"server_certificate_bytes": stack.server_certificate_bytes}
    if stack.is_mutual:
        chains["client_certificate_bytes"] = stack.client_certificate_bytes
    for key, sizes in chains.items():
        if sizes != ours:
            return (
                f"stack.{key} is {list(sizes)}: the lab makes its own certificates, of "
                f"{list(ours)} B; leave the key out to measure"
            )
    return None


def _other_kernel(profile: str) -> str | None:
    """Why the running kernel is not the case's; None if its major and minor version are."""
    release = os.uname().release
    running, wanted = _VERSION.match(release), _VERSION.match(profile.removeprefix("linux-"))
    if running is not None and wanted is not None and running.groups() == wanted.groups():
        return None
    here = running[0] if running is not None else release
    return (
        f"stack.kernel is {profile}, this machine runs Linux {release}, which is another TCP; "
        f'only `stack.kernel = "linux-{here}"` can be measured here'
    )


_VERSION = re.compile(r"(\d+)\.(\d+)(?![\d])")


def kernel_remark(case: Case) -> str | None:
    """What to know if the case's kernel profile is of another patch level; None if it is not."""
    release = os.uname().release
    wanted = case.stack.kernel.removeprefix("linux-")
    if release == wanted or release.startswith((wanted + ".", wanted + "-")):
        return None
    return (
        f"stack.kernel is {case.stack.kernel}, this machine runs Linux {release}: the prediction "
        "is for a TCP that may differ from the one that was measured"
    )


def trials_a_part(case: Case, most: int = MAX_TRIALS_A_PART) -> int:
    """How many trials of a case make a part: fewer where one takes long.

    A connection on its own is taken for six crossings of the link and the pause after it.
    """
    if not case.has_memory:
        return most
    one_ns = case.settling_ns + 6 * (case.rtt_ns + 2 * max(case.link["jitter"], default=0))
    return max(1, min(most, PART_SECONDS * 1_000_000_000 // max(1, one_ns)))


def parts_of(trials: int, most: int = MAX_TRIALS_A_PART) -> list[int]:
    """Splits a cell's trials into parts, each a unit of progress, as even as can be.

    >>> parts_of(2500)
    [834, 833, 833]
    """
    if trials <= 0:
        return []
    count = -(-trials // most)
    base, extra = divmod(trials, count)
    return [base + (index < extra) for index in range(count)]
