# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Table 3 of papers/1 (Sakomoto, Watanabe, Mori: Impact Assessment of Signature Processing on
Communication Protocol Performance under IoT SAFE): ECDSA P-256, n = 100, 32 fixed bytes."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "Sakomoto et al. 2025, Table 3"


@dataclass(frozen=True)
class Row:
    """One mode: times in ms, and how many of `n` took over 1 s."""

    mean: float
    sd: float
    p50: float
    p90: float
    p99: float
    over_1_s: int
    n: int = 100


TABLE_3 = {
    "local_sw": Row(11.5, 4.0, 10.0, 16.6, 24.5, 0),
    "sign_only": Row(476.5, 9.2, 475.1, 483.5, 494.8, 0),
    "total": Row(677.7, 177.2, 642.2, 671.9, 1739.4, 4),
}
"""`local_sw` is the whole `openssl dgst -sha256 -sign`, `sign_only` C_SignInit and C_Sign in a
session that is kept, `total` all five calls in a new session each time."""
