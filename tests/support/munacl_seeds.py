# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Inputs that munacl's fuzz target begins with: published signatures and boxes, which open, and
what Wycheproof has of signatures and points that must not."""

from __future__ import annotations

from pathlib import Path

from support.paths import ROOT
from warifu.reproduce import munacl_checks as checks

#: By call of the vectors: the target's number for what it does, and the order of the arguments.
KINDS = {
    "sign_open": (0, (0, 1)),
    "secretbox_open": (1, (2, 1, 0)),
    "box_open": (2, (2, 3, 1, 0)),
    "secretbox": (4, (2, 1, 0)),
    "auth": (6, (0, 1)),
    "onetimeauth": (6, (0, 1)),
    "scalarmult": (7, (0, 1)),
}
#: What is altered of an input, in two bytes, low first.
WHERE = bytes([77, 1])
#: Of each call and source. A file more costs every round of the fuzzer.
MOST = 40


def write(folder: Path) -> int:
    """Writes the inputs as files; how many open."""
    count = valid = 0
    for source in checks.SOURCES:
        taken = dict.fromkeys(KINDS, 0)
        for call, result in checks.read_vectors(ROOT / "vectors", source):
            name, *arguments = call.split()
            if name not in KINDS or len(call) > 1000 or taken[name] == MOST:
                continue
            taken[name] += 1
            kind, order = KINDS[name]
            parts = [bytes.fromhex(arguments[i].strip("-")) for i in order]
            valid += name.endswith("_open") and result.startswith("0")
            if name == "secretbox":
                parts[-1] = parts[-1][32:]
            seeds = [bytes([kind]) + WHERE + b"".join(parts)]
            if name == "sign_open" and result.startswith("0"):
                # A message of the same length by a key of the fuzzer's.
                seeds.append(bytes([3]) + WHERE + parts[0] + parts[1][64:])
            if name == "box_open":
                seeds.append(bytes([5]) + WHERE + b"".join(parts[:3]) + parts[3][32:])
            for seed in seeds:
                (folder / f"{count:04}").write_bytes(seed)
                count += 1
    return valid
