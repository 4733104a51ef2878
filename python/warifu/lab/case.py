# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A case as the lab reads it: from the canonical JSON that both halves share."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

THIS_HOST = "this-host"
"""The device profile that stands for the machine the lab runs on."""

MAX_TRIALS_A_PART = 1_000
"""Trials after which a cell's progress is kept."""


@dataclass(frozen=True)
class Stack:
    """The protocols and their settings; names as in `crates/warifu-model/src/case.rs`."""

    protocol: str
    tls: str
    session: str
    authentication: str
    group: str
    certificate: str
    chain_length: int
    cipher_suite: str
    key_share: str
    server_name: str | None
    kernel: str
    congestion_control: str
    initcwnd: int
    nagle: bool

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

    @property
    def rtt_ns(self) -> int:
        """Propagation delay there and back."""
        return int(self.link["rtt"])

    @property
    def is_lossy(self) -> bool:
        """Whether the link may lose a packet."""
        return bool(self.link["loss"]["kind"] != "none")

    @staticmethod
    def parse(case_id: str, canonical: str, label: str) -> Case:
        """From a case's canonical JSON; KeyError if it lacks a key that the lab knows."""
        value = json.loads(canonical)
        stack = value["stack"]
        return Case(
            case_id=case_id,
            canonical=canonical,
            label=label,
            device=value["device"]["profile"],
            server=value["server"]["profile"],
            key_store=value["key_store"]["profile"],
            session_open=value["key_store"]["session_open"],
            link=value["link"],
            stack=Stack(**{name: stack[name] for name in Stack.__dataclass_fields__}),
            path=value["pattern"]["path"],
            response_body_bytes=value["pattern"]["response_body"],
            concurrent=value["pattern"]["concurrent"],
        )


def why_not_measurable(case: Case) -> str | None:
    """Why the lab cannot run a case, with the mend; None if it can.

    The lab's two machines are both this one, and its key store is OpenSSL's own.
    """
    for key, name in (("device", case.device), ("server", case.server)):
        if name != THIS_HOST:
            return (
                f"{key} is {name}: the lab's {key} is this machine; "
                f'only `{key} = "{THIS_HOST}"` can be measured here'
            )
    if case.key_store != "software":
        return (
            f"key_store is {case.key_store}: measuring it needs that card; "
            'only `key_store = "software"` can be measured here'
        )
    if case.stack.protocol != "https":
        return f"stack.protocol is {case.stack.protocol}: the lab runs https alone"
    if case.concurrent != 1:
        return (
            f"pattern.concurrent is {case.concurrent}: the lab's connections do not wait for one "
            "another; only `concurrent = 1` can be measured"
        )
    if not 576 <= case.link["mtu"] <= 65_535:
        return f"link.mtu is {case.link['mtu']}: the lab's link takes 576 to 65535"
    return None


def kernel_remark(case: Case) -> str | None:
    """What to know if the case's kernel profile is not of the running kernel; None if it is."""
    release = os.uname().release
    wanted = case.stack.kernel.removeprefix("linux-")
    if release == wanted or release.startswith((wanted + ".", wanted + "-")):
        return None
    return (
        f"stack.kernel is {case.stack.kernel}, this machine runs Linux {release}: the prediction "
        "is for another TCP than the one that was measured"
    )


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
