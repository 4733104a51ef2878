# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Cases and studies for the lab's tests."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warifu.case import VERSION
from warifu.lab import kernel
from warifu.lab.case import Cell, KernelRelease
from warifu.lab.https.stack import CERTIFICATE_BYTES

_RUNNING = kernel.running()._replace(patch=None)

MUTUAL_13: dict[str, Any] = {
    "version": VERSION,
    "device": {"profile": "this-host"},
    "server": {"profile": "this-host"},
    "key_store": {"profile": "software", "session_open": True},
    "link": {
        "profile": "loopback",
        "rtt": 0,
        "jitter": [],
        "keep_order": True,
        "rate_up": None,
        "rate_down": None,
        "queue_packets": 1000,
        "mtu": 1500,
        "loss": {"kind": "none"},
    },
    "stack": {
        "protocol": "https",
        "tls": {
            "version": "1.3",
            "session": "full",
            "authentication": "mutual",
            "group": "secp256r1",
            "certificate": "ecdsa_secp256r1",
            "chain_length": 1,
            "server_certificate_bytes": [486],
            "client_certificate_bytes": [486],
            "cipher_suite": "TLS_AES_128_GCM_SHA256",
            "key_share": "fresh",
            "server_name": None,
        },
        "tcp": {
            "device": f"linux-{_RUNNING}",
            "server": f"linux-{_RUNNING}",
            "congestion_control": "cubic",
            "initcwnd": 10,
            "nagle": False,
        },
    },
    "pattern": {"kind": "request", "path": "/", "response_body": 846, "concurrent": 1},
}


def make_case(**changes: Any) -> Cell:  # noqa: ANN401
    """A mutual TLS 1.3 case at no delay with changes such as `link__rtt=1000` or
    `tls__session="psk_ke"`; `kernel__server=(6, 1, None)` is a TCP profile of that kernel, None
    one that names none.

    Certificates have the lab's sizes if nothing else is said.
    """
    value = copy.deepcopy(MUTUAL_13)
    for path, new in changes.items():
        section, _, key = path.partition("__")
        if section == "kernel":
            continue
        layers = value["stack"] if section in ("tls", "tcp") else value
        layers[section][key] = new
    tls = value["stack"]["tls"]
    ours = list(CERTIFICATE_BYTES[tls["certificate"], tls["chain_length"]])
    mutual = tls["authentication"] == "mutual"
    for end, sizes in (("server", ours), ("client", ours if mutual else [])):
        if f"tls__{end}_certificate_bytes" not in changes:
            tls[f"{end}_certificate_bytes"] = sizes
    kernels = []
    for end in ("device", "server"):
        release = changes.get(f"kernel__{end}", _RUNNING)
        if release is not None:
            value["stack"]["tcp"][end] = f"linux-{KernelRelease(*release)}"
        kernels.append((f"{end}.tcp", value["stack"]["tcp"][end], release))
    return _cell(value, changes, kernels)


def _cell(value: dict[str, Any], changes: dict[str, Any], kernels: Sequence[Any] = ()) -> Cell:
    canonical = json.dumps(value, separators=(",", ":"))
    case_id = hashlib.sha256(canonical.encode()).hexdigest()[:16]
    return Cell.of(View(case_id, canonical, ", ".join(map(str, changes.values())), kernels))


def make_coap_case(**changes: object) -> Cell:
    """64 B by a confirmable request at no delay, with changes such as `stack__message_type`."""
    value = copy.deepcopy(MUTUAL_13)
    value["stack"] = {
        "protocol": "coap",
        "message_type": "CON",
        "ack_timeout": 2_000_000_000,
        "ack_random_factor_percent": 150,
        "max_retransmit": 4,
    }
    value["pattern"] |= {"path": "/data", "response_body": 64}
    for path, new in changes.items():
        section, _, key = path.partition("__")
        value[section][key] = new
    return _cell(value, changes)


def make_dds_case(**changes: object) -> Cell:
    """64 B there and back without security at no delay, with changes such as
    `stack__crypto="builtin"`, which brings SROS2's governance."""
    value = copy.deepcopy(MUTUAL_13)
    secured = changes.get("stack__crypto", "none") != "none"
    kind, signed = ("ENCRYPT", "SIGN") if secured else ("NONE", "NONE")
    value["stack"] = {
        "protocol": "dds",
        "crypto": "none",
        "aead": "AES-256-GCM",
        "data_protection": kind,
        "metadata_protection": kind,
        "rtps_protection": signed,
        "discovery_protection": kind,
    }
    value["pattern"] |= {"path": "/chatter", "response_body": 64}
    for path, new in changes.items():
        section, _, key = path.partition("__")
        value[section][key] = new
    # As the canonical form has it, which names a case.
    if value["stack"].get("middleware") == "cyclonedds":
        del value["stack"]["middleware"]
    return _cell(value, changes)


@dataclass
class View:
    """Stands for a case as warifu._core shows it."""

    id: str
    json: str
    label: str
    kernels: Sequence[Any] = ()


@dataclass
class SmallStudy:
    """Stands for warifu._core.Study."""

    cases: list[View]
    name: str = "lab-test"
    seed: int = 7
    trials: int = 6


def study_of(*cases: Cell, trials: int = 6) -> SmallStudy:
    """A study of cases."""
    views = [
        View(
            case.case_id,
            case.canonical,
            case.label,
            [(end.setting, end.profile, end.kernel) for end in case.tcp],
        )
        for case in cases
    ]
    return SmallStudy(views, trials=trials)
