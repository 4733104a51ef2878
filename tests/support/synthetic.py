# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Made-up results folders in the real schema, for tests of what reads results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from warifu import _core

Floats = np.ndarray[Any, np.dtype[np.float64]]

STAGES = ("client_compute", "server_compute", "key_store", "propagation", "loss_recovery")


@dataclass(frozen=True)
class Cell:
    """One case with a known truth: so many round trips, noise, and loss repaired by timers."""

    tls: str = "1.3"
    session: str = "full"
    rtt_ms: int = 60
    loss: float = 0.0
    bursts: bool = False

    @property
    def case_id(self) -> str:
        text = f"{self.tls} {self.session} {self.rtt_ms} {self.loss}"
        return f"{abs(hash_of(text)):016x}"[:16]

    @property
    def columns(self) -> dict[str, str | int | float]:
        return {
            "device": "this-host",
            "link": "loopback",
            "rtt_ns": self.rtt_ms * 1_000_000,
            "loss_model": self._loss_model,
            "loss_mean": self.loss,
            "protocol": "https",
            "tls": self.tls,
            "session": self.session,
            "concurrent": 1,
        }

    @property
    def _loss_model(self) -> str:
        if self.bursts:
            return "gilbert_elliott"
        return "independent" if self.loss else "none"

    @property
    def canonical(self) -> dict[str, Any]:
        loss: dict[str, Any] = {"kind": "none"}
        if self.loss:
            loss = {"kind": "independent", "probability": self.loss}
        return {"link": {"rtt": self.rtt_ms * 1_000_000, "loss": loss}}

    def establishments(self, n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Times in ns of n connections by stage."""
        turns = {"1.2": 4, "1.3": 3}[self.tls] - (self.session != "full" and self.tls == "1.2")
        lost = rng.binomial(8, self.loss, n) if self.loss else np.zeros(n)
        recovery = lost * rng.choice([76e6, 260e6, 340e6, 1000e6], n, p=[0.3, 0.3, 0.3, 0.1])
        return {
            "client_compute": rng.gamma(40, 0.02e6, n),
            "server_compute": rng.gamma(40, 0.02e6, n),
            "key_store": rng.gamma(40, 0.005e6, n),
            "propagation": np.full(n, turns * self.rtt_ms * 1e6),
            "loss_recovery": recovery,
        }


def case_used(
    case_id: str,
    case: dict[str, Any],
    label: str = "",
    choices: Sequence[tuple[str, str]] = (),
) -> dict[str, Any]:
    """A case as a manifest has it."""
    about = {"label": label, "choices": [list(one) for one in choices], "evidence": "published"}
    return {"case_id": case_id, **about, "case": case}


def figure_used(
    name: str,
    value: str,
    kind: str,
    source: str = "",
    unit: str = "ns",
    cases: Sequence[str] | None = None,
    *,
    what: tuple[str, str, str] | None = ("device", "d", "client.sign"),
    number: float | None = None,
    last_digit_ns: int | None = None,
    chosen: bool = False,
) -> dict[str, Any]:
    """A figure as a manifest has it: of all cases, or of some; `chosen` by the study itself.

    `what` is what it belongs to, whose it is and what it is there; None as older versions wrote.
    """
    evidence = kind if kind in {"measured", "assumed"} else "published"
    figure = {"name": name, "value": value, "unit": unit, "source": source, "kind": kind}
    about = {"id": sha256(json.dumps(figure).encode()).hexdigest()[:16]}
    about |= {} if cases is None else {"cases": list(cases)}
    typed: dict[str, Any] = {"number": number, "last_digit_ns": last_digit_ns}
    if what is not None:
        typed["what"] = dict(zip(("of", "owner", "key"), what, strict=True))
    about |= {key: value for key, value in typed.items() if value is not None}
    return figure | about | {"evidence": None if chosen else evidence}


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Writes a manifest with its seal, whatever it holds: hostile ones are sealed, too."""
    manifest = {"manifest_sha256": "0" * 64} | {
        key: value for key, value in manifest.items() if key != "manifest_sha256"
    }
    blank = json.dumps(manifest, indent=2)
    text = blank.replace("0" * 64, sha256(blank.encode()).hexdigest(), 1)
    (folder / "manifest.json").write_text(text)


def change_manifest(folder: Path, **changes: object) -> None:
    """Writes a folder's manifest anew with other values, under a seal that fits."""
    manifest = json.loads((folder / "manifest.json").read_text())
    write_manifest(folder, manifest | changes)


def hash_of(text: str) -> int:
    """A small stable hash (FNV-1a)."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


@dataclass
class Half:
    """One half of a made-up study."""

    half: str
    cells: list[Cell]
    n: int
    seed: int
    #: Every time is multiplied by this: the truth that verdicts are tested against.
    scale: float = 1.0
    failed: int = 0
    client_bytes: tuple[int, ...] = (915, 916, 917)
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def method(self) -> str:
        return "simulated" if self.half == "predicted" else "emulated"

    @property
    def _measured_at_once(self) -> dict[str, Any]:
        """All of each cell in one part; nothing of a prediction."""
        trials = max(self.n, self.failed)
        whole = {"trials": trials, "parts": [{"first_trial": 0, "trials": trials}]}
        return {cell.case_id: whole for cell in self.cells if self.half == "measured"}

    def write(self, folder: Path) -> Path:
        """Writes `folder/<half>` and returns it."""
        path = folder / self.half
        (path / "observations").mkdir(parents=True)
        run_id = f"run-{self.half}-{self.seed}"
        rng = np.random.default_rng(self.seed)
        for cell in self.cells:
            frame = self._rows(cell, run_id, rng)
            frame.write_parquet(path / "observations" / f"{cell.case_id}.parquet")
        text = 'name = "made-up"\n'
        study = {"name": "made-up", "sha256": sha256(text.encode()).hexdigest(), "text": text}
        manifest = {
            "schema_version": _core.SCHEMA_VERSION,
            "half": self.half,
            "run_id": run_id,
            "seed": 7,
            # What is predicted is there before it is measured.
            "started": f"2026-11-21T0{5 if self.half == 'predicted' else 6}:00:00Z",
            "finished": f"2026-11-21T0{5 if self.half == 'predicted' else 6}:04:00Z",
            "complete": True,
            "commit": "0123456789abcdef",
            "dirty": False,
            "machine": {"cpu": "a made-up processor", "cores": 2, "kernel": "6.18.0"},
            "tools": {"openssl": "3.0.19", "nginx": "1.22.1"},
            "methods": [self.method],
            "evidence": ["published"],
            "cases": [case_used(cell.case_id, cell.canonical) for cell in self.cells],
            "require": [["https.establishment", "p99", "<", 5e9, "https.establishment.p99 < 5 s"]],
            **self.manifest,
            "cells": _recorded(self._measured_at_once | self.manifest.get("cells", {})),
            "study": study | self.manifest.get("study", {}),
        }
        write_manifest(path, manifest)
        return path

    def _rows(self, cell: Cell, run_id: str, rng: np.random.Generator) -> pl.DataFrame:
        stages = {k: v * self.scale for k, v in cell.establishments(self.n, rng).items()}
        total = np.sum(list(stages.values()), axis=0)
        signature = rng.choice(self.client_bytes, self.n, p=_shares(len(self.client_bytes)))
        connect = np.full(self.n, cell.rtt_ms * 1e6 * self.scale)
        columns: list[tuple[str, str | None, str, Floats]] = [
            ("https.establishment", None, "ns", total),
            ("tcp.connect", None, "ns", connect),
            ("tls.handshake", None, "ns", (total - connect) * 0.66),
            ("https.first_response", None, "ns", (total - connect) * 0.34),
            ("bytes.client_sent", None, "B", signature.astype(np.float64)),
            ("bytes.server_sent", None, "B", np.full(self.n, 1650.0)),
        ]
        if self.half == "predicted":
            columns += [("https.establishment", name, "ns", at) for name, at in stages.items()]
        if self.failed:
            columns.append(("connection.failed", None, "1", np.ones(self.failed)))
        frames = [
            pl.DataFrame(
                {
                    "connection": np.zeros(values.size, np.uint32),
                    "trial": np.arange(values.size, dtype=np.uint64),
                    "metric": pl.Series([metric] * values.size, dtype=pl.String),
                    "stage": pl.Series([stage] * values.size, dtype=pl.String),
                    "value": values,
                    "unit": pl.Series([unit] * values.size, dtype=pl.String),
                }
            )
            for metric, stage, unit, values in columns
        ]
        words = {"study": "made-up", "case_id": cell.case_id, "run_id": run_id}
        words |= {"method": self.method, "evidence": "published"}
        types = {
            "u16": pl.UInt16,
            "u32": pl.UInt32,
            "u64": pl.UInt64,
            "f64": pl.Float64,
            "text": pl.String,
        }
        settings = [
            pl.lit(cell.columns[name], types[kind]).alias(name)
            for name, kind, _, _ in _core.columns()
            if name in cell.columns
        ]
        return pl.concat(frames).with_columns(
            *(pl.lit(value).alias(name) for name, value in words.items()),
            *settings,
            pl.lit(1.0).alias("weight"),
            pl.lit(None, pl.String).alias("step"),
            pl.lit(None, pl.UInt64).alias("from_ns"),
            pl.lit(None, pl.UInt64).alias("until_ns"),
            pl.lit(1, pl.UInt64).alias("seed"),
        )


def _recorded(cells: dict[str, Any]) -> dict[str, Any]:
    """Cells whose parts say that nothing was in the way, but for what they say themselves."""
    quiet = {"processor_shares": {"others": 0.0, "stolen": 0.0}, "others_max": 0.05}
    quiet |= {"busy": {"client": 0.01, "server": 0.01}}
    return {
        case_id: {**cell, "parts": [{**quiet, **part} for part in cell.get("parts") or []]}
        for case_id, cell in cells.items()
    }


def _shares(count: int) -> list[float]:
    return {1: [1.0], 2: [0.5, 0.5], 3: [0.25, 0.5, 0.25]}[count]


def study(
    folder: Path,
    cells: list[Cell],
    n: int = 2_000,
    scale: float = 1.0,
    failed: int = 0,
    client_bytes: tuple[int, ...] = (915, 916, 917),
) -> Path:
    """Both halves of a study whose prediction is perfect, but for what is given."""
    Half("predicted", cells, 20_000, seed=1).write(folder)
    measured = Half("measured", cells, n, 2, scale, failed, client_bytes)
    measured.write(folder)
    return folder
