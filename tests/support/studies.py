# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A small study on a device that can do everything, and what is written of it."""

from __future__ import annotations

import json
from typing import Any

from support.paths import ROOT
from warifu import _core

PROFILES = [
    (path.parent.name, path.stem, path.read_text(), str(path.relative_to(ROOT)))
    for path in sorted((ROOT / "profiles").glob("*/*.toml"))
    if path.stem != "this-host" and path.parent.name != "cards"  # the card's own room reads those
]
STUDY = """
name = "meter"
seed = 7
trials = 50
device = "gr-peach"
server = "gr-peach"
stack = "https/tls1.3"

[vary]
"link.rtt" = ["60 ms", "150 ms"]
"link.loss" = ["0 %", "2 %"]

[require]
"https.establishment.p99" = "< 5 s"
"""


def host() -> tuple[str, str, str, str]:
    """A device that can do everything, each operation in 0.1 ms."""
    messages = [
        "ClientHello",
        "ServerHello",
        "EncryptedExtensions",
        "CertificateRequest",
        "Certificate",
        "CertificateVerify",
        "Finished",
        "EndOfEarlyData",
        "NewSessionTicket",
        "ServerKeyExchange",
        "ServerHelloDone",
        "ClientKeyExchange",
        "ChangeCipherSpec",
        "ApplicationData",
    ]
    calls = ["connect", "wake", "accept", "write", "http_respond", "http_receive", "interface"]
    names = [
        f"{role}.{what}"
        for role in ("client", "server")
        for what in (
            *(f"{way}.{message}" for way in ("send", "receive") for message in messages),
            "sign",
            *(f"system.{call}" for call in calls),
        )
    ]
    head = """
        name = "host"
        description = "0.1 ms for everything"
        idle_threshold = { value = "5 ms", kind = "assumed" }
    """
    body = "".join(
        f'\n[[operation]]\nname = "{name}"\nwarm = "0.1 ms"\n{whatever(name)}' for name in names
    )
    return ("device", "host", head + body, "host.toml")


def whatever(operation: str) -> str:
    """The line of a cost that holds whatever the operation's cost may depend on."""
    choices = ", ".join(
        f"{key} = {json.dumps(words)}" for key, words in _core.cost_choices(operation)
    )
    return f"when = {{ {choices} }}\n" if choices else ""


def study(*overrides: tuple[str, str]) -> _core.Study:
    """The study above, on that device."""
    both = [("device", "host"), ("server", "host"), *overrides]
    return _core.Study.parse(STUDY, "meter.toml", [*PROFILES, host()], both)


def rows(count: int = 3, **changed: list[Any]) -> dict[str, list[Any]]:
    """Columns of observations."""
    return {
        "connection": [0] * count,
        "trial": list(range(count)),
        "metric": ["https.establishment"] * count,
        "stage": [None] * count,
        "value": [184e6 + trial for trial in range(count)],
        "unit": ["ns"] * count,
        "weight": [1.0] * count,
        "seed": [2**64 - 1] * count,
    } | changed


MANIFEST = json.dumps(
    {
        "schema_version": _core.SCHEMA_VERSION,
        "half": "predicted",
        "run_id": "run-1",
        "study": {"name": "meter", "sha256": "", "text": ""},
        "seed": 7,
        "started": "2026-01-01T00:00:00Z",
    }
)
