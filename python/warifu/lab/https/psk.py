# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A pre-shared key from outside, as both ends of the lab are given it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from warifu.case import Tls

KEY_BYTES = 32
"""As long as the hash of its suites, SHA-256 (RFC 8446 section 4.2.11)."""


@dataclass(frozen=True)
class PreSharedKey:
    """A key, and the identity by which the device names it."""

    identity: str
    key: str
    """Hexadecimal."""

    @staticmethod
    def for_run(tls: Tls) -> PreSharedKey | None:
        """A new key of a run; None where the case has none from outside."""
        if tls.psk is None:
            return None
        identity = "d" * tls.psk.identity_bytes
        return PreSharedKey(identity, secrets.token_hex(KEY_BYTES))
