# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The names of what a device is asked for (crates/core/model/src/operation.rs)."""

from __future__ import annotations

MESSAGES = (
    *("ClientHello", "ServerHello", "EncryptedExtensions", "CertificateRequest", "Certificate"),
    *("CertificateVerify", "Finished", "EndOfEarlyData", "NewSessionTicket", "ServerKeyExchange"),
    *("ServerHelloDone", "ClientKeyExchange", "ChangeCipherSpec", "ApplicationData"),
)
CALLS = ("connect", "wake", "accept", "write", "http_respond", "interface")


def operations() -> list[str]:
    """Every name, as in a device profile."""
    names = []
    for role in ("client", "server"):
        names += [f"{role}.{way}.{name}" for way in ("send", "receive") for name in MESSAGES]
        names += [f"{role}.sign", *(f"{role}.system.{call}" for call in CALLS)]
    return names
