# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs `warifu-calibrate-bench token` and reads its trials."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warifu import tools
from warifu.calibrate import program
from warifu.calibrate.errors import CalibrateError
from warifu.files import temporary_folder

MESSAGE = b"12345678901234567890123456789012"
"""What is signed: papers/1, section 3.3."""

OPENING = ("C_OpenSession", "C_Login", "C_FindObjects")
SIGNING = ("C_SignInit", "C_Sign")
LIFE = "process"
"""Of a fresh process, from its start to its end, beside the calls that are within."""


@dataclass(frozen=True)
class Plan:
    """What is timed."""

    module: Path | None
    """The shared library, or None for a card on the virtual clock."""
    card: Path | None = None
    """The timing profile of that card."""
    token: str | None = None
    key: str | None = None
    pin: str | None = field(default=None, repr=False)
    trials: int = 100
    seed: int = 1
    fresh: bool = False
    """Also in a new process each time."""

    @property
    def modes(self) -> tuple[str, ...]:
        """The paper's, and a process of its own where it is asked for."""
        if self.module is None:
            return ("sign_only", "total")
        return ("local_sw", "sign_only", "total", *(("fresh",) if self.fresh else ()))


@dataclass(frozen=True)
class Trials:
    """What was timed: the token's own words, and ns of each call by mode, all trials in order."""

    token: dict[str, Any]
    calls: dict[str, dict[str, NDArray[np.float64]]]
    card: dict[str, dict[str, float]] = field(default_factory=dict)
    """Of a card on the virtual clock: what it takes by itself, by mode; `mean_ns`, `p50_ns`,
    `p90_ns`, `p99_ns`."""

    def sums(self, mode: str) -> NDArray[np.float64]:
        """What each trial of a mode took, ns; of a fresh process, its calls."""
        calls = self.calls[mode]
        parts = [times for call, times in calls.items() if call != LIFE]
        return np.asarray(np.sum(parts, axis=0))


def run(plan: Plan, progress: Callable[[int, int], None]) -> Trials:
    """Times all trials. Raises CalibrateError with the bench's own words, or ToolMissing."""
    with tempfile.TemporaryDirectory(prefix="warifu-token-", dir=temporary_folder()) as name:
        folder = Path(name)
        request: dict[str, Any] = {
            "modes": plan.modes,
            "trials": plan.trials,
            "seed": plan.seed,
            "token": plan.token,
            "key": plan.key,
            "pin": plan.pin,
        }
        if plan.module is None:
            request["virtual_card"] = {"profile": str(plan.card), "seed": plan.seed}
        else:
            # A bare name would be looked for where the system keeps its libraries.
            request["module"] = str(plan.module.absolute())
            request["software"] = _software(folder)
        total, seen = plan.trials * len(plan.modes), 0

        def heard(lines: bytes) -> None:
            nonlocal seen
            seen += lines.count(b"\n")
            # The first line introduces the token, the last ones a card on the virtual clock.
            progress(min(max(0, seen - 1), total), total)

        return read(program.output_of("warifu-calibrate-bench", "token", request, heard))


def _software(folder: Path) -> list[str]:
    """The command of the paper's local_sw, with a key made for it."""
    openssl = str(tools.find("openssl"))
    key, data = folder / "software.pem", folder / "message"
    data.write_bytes(MESSAGE)
    made = subprocess.run(
        [openssl, "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-out", key],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        raise CalibrateError(f"openssl cannot make a key: {made.stderr.strip()}")
    sign = ["dgst", "-sha256", "-sign", str(key), "-out", str(folder / "signature"), str(data)]
    return [openssl, *sign]


def read(text: str) -> Trials:
    """The bench's lines."""
    token: dict[str, Any] = {}
    card: dict[str, dict[str, float]] = {}
    lists: dict[str, dict[str, list[float]]] = {}
    for line in text.splitlines():
        event = json.loads(line)
        what = event.pop("event")
        if what == "token":
            token = event
            continue
        if what == "card":
            card[event.pop("mode")] = event
            continue
        calls = lists.setdefault(event["mode"], {})
        for call, nanoseconds in event["times_ns"]:
            calls.setdefault(call, []).append(float(nanoseconds))
    return Trials(
        token,
        {
            mode: {call: np.asarray(times) for call, times in calls.items()}
            for mode, calls in lists.items()
        },
        card,
    )
