# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs `warifu-calibrate-bench ciphers` and makes its times into primitives of a profile: ciphers,
and the P-256 with which participants authenticate each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from warifu.calibrate import program
from warifu.calibrate.bench import Effort
from warifu.calibrate.profile import Entry, Law

LENGTHS = (32, 256, 1024, 4096, 16_384, 65_536)
"""Of messages, B."""


def run(effort: Effort, progress: Callable[[str], None]) -> list[Entry]:
    """Times every cipher. Raises CalibrateError if the bench fails, ToolMissing without it."""
    config = {"readings": effort.warm, "lengths": LENGTHS}
    progress("timing the ciphers of DDS")
    report = json.loads(program.output_of("warifu-calibrate-bench", "ciphers", config))
    return entries(report)


def entries(report: Mapping[str, Any]) -> list[Entry]:
    """The primitives that a report gives: so much a call and so much a byte.

    What a call takes longer after a pause is its plugin's own (`dds_fit`), which is found in real
    processes: after a pause of the bench there are none of a middleware's steps before the call.
    """
    rows: dict[tuple[str, bool], list[Mapping[str, Any]]] = {}
    for row in report["calls"]:
        rows.setdefault((f"aead.{row['operation']}.{row['aead']}", row["keyed"]), []).append(row)
    found = []
    for (name, keyed), of in rows.items():
        a_call, a_byte = line([(row["bytes"], row["ns"]) for row in of])
        found.append(
            Entry(
                f"{name}.keyed" if keyed else name,
                {},
                Law.constant(a_call),
                per_byte_ns=a_byte,
                source="warifu-calibrate-bench ciphers, "
                + ("Warifu's plugin" if keyed else report["openssl"]),
                note="key set up before" if keyed else "with a context and its key for each call",
                is_primitive=True,
            )
        )
    found += [
        Entry(
            name,
            {},
            Law.constant(ns),
            source=f"warifu-calibrate-bench ciphers, {report['openssl']}",
            is_primitive=True,
        )
        for name, ns in report["authentication"].items()
    ]
    return found


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope, neither below 0, of bytes and ns with the least squares of relative
    differences."""
    from scipy.optimize import nnls

    bytes_, ns = np.array(points, dtype=np.float64).T
    # What opens is less a copy, which can take as long where readings are few.
    ns = np.maximum(ns, 1.0)
    matrix = np.stack([np.ones_like(bytes_), bytes_], axis=1) / ns[:, None]
    (a_call, a_byte), _ = nnls(matrix, np.ones_like(ns))
    return float(a_call), float(a_byte)
