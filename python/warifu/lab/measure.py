# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs the cases of a study on real programs over the emulated link."""

from __future__ import annotations

import datetime
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from warifu import _core, identity, tools
from warifu.lab import causes, interruption, kernel, quiet, seeds, workplace
from warifu.lab.card import StandIn
from warifu.lab.case import MAX_TRIALS_A_PART, CaseView, Cell
from warifu.lab.cell import Bench, Settings
from warifu.lab.drivers import driver_of, why_not_measurable
from warifu.lab.errors import LabError, ResultsMixed, RunRejected
from warifu.lab.pace import PART_OVERHEAD_S, Pace
from warifu.lab.store import Part, Store
from warifu.results import parts as measured_parts

MAX_ATTEMPTS = 5
"""How often a part is begun before it is put off, and then again before its cell is given up."""

PATIENCE = 3
"""Parts given up one after the other, after which the rest is given up as well."""

PILOT = "finding out what a connection takes of the server, so that none waits for another"
"""Said of a pilot, once."""


class Study(Protocol):
    """What the lab needs of `warifu._core.Study`."""

    name: str
    seed: int
    trials: int
    cases: list[CaseView]


@dataclass(frozen=True)
class Progress:
    """Where a measurement is: after each part, and whenever there is something to say."""

    cells_done: int
    cells: int
    trials_done: int
    trials: int
    label: str
    message: str = ""
    seconds_left: float | None = None
    """What all that is to do will take."""
    rejected: int = 0
    """Attempts that were rejected, whatever the cause, each of which is made again."""
    overdue: bool = False
    """Whether parts took longer than planned, beyond an end that was foreseen."""


@dataclass
class Summary:
    """What a measurement did."""

    folder: Path
    run_id: str
    complete: bool = False
    measured: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Case label to the reason why the lab cannot run it."""
    given_up: dict[str, str] = field(default_factory=dict)
    """Case label to the reason why every attempt failed; the same command tries again."""
    rejections: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    """Why attempts were rejected to how many were; one may have several causes."""
    warnings: list[str] = field(default_factory=list)


def measure(
    study: Study,
    out_dir: Path,
    *,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
    trials: int | None = None,
    part_trials: int = MAX_TRIALS_A_PART,
    manifest: dict[str, Any] | None = None,
    settings: Settings | None = None,
    stand_ins: Mapping[str, StandIn] | None = None,
) -> Summary:
    """Measures every case of the study that this machine can, `trials` connections each.

    Results go to `out_dir` (see `warifu.lab.store`); cells and parts that are there already are
    not measured again, also where they have more trials. `manifest` is what the caller knows
    (study text, commit, profiles); the lab adds machine, tools, links and rejections. `stop` is
    asked several times a second.
    `stand_ins` are the virtual cards that are run for key stores, by their profiles' names.

    A cell whose parts are rejected again and again is given up, and the others are measured.
    Raises LabUnavailable if nothing can be measured here, ResultsMixed if the folder holds what
    another machine or other tools gave, LabError if a program fails; cells that are finished stay.
    Where nothing was begun no folder is left. Everything started is gone when this returns or
    raises.
    """
    cases = [Cell.of(view) for view in study.cases]
    trials = study.trials if trials is None else trials
    if trials < 1:
        raise LabError(f"trials is {trials}: expected 1 or more")
    stand_ins = stand_ins or {}
    reasons = {case.case_id: why_not_measurable(case, stand_ins) for case in cases}
    able = [case for case in cases if reasons[case.case_id] is None]
    skipped = {
        case.label: reason for case in cases if (reason := reasons[case.case_id]) is not None
    }
    if not able:
        return Summary(out_dir, "", skipped=skipped)
    store = Store(out_dir)
    run = _Run(study, store, able, trials, part_trials, progress or (lambda _: None))
    run.summary.skipped = skipped
    remarks = {remark for case in able if (remark := driver_of(case).remark(case)) is not None}
    run.summary.warnings = sorted(remarks)
    try:
        run.begin(manifest or {}, cases)
        if run.to_do:
            with interruption.deferred():
                with identity.as_root():
                    workplace.sweep()
                bench = Bench(settings or Settings(), stand_ins)
                run.all_parts(bench, stop or (lambda: False))
    except BaseException:
        if not run.has_something:
            store.remove_if_new()
        raise
    run.end()
    return run.summary


def noise(parts: Sequence[measured_parts.Part]) -> list[str]:
    """A remark if other work took much of the processors beside parts, of those that tell."""
    taken = [part.others for part in parts if part.others is not None]
    loud = [one for one in taken if one > quiet.OTHERS_MAX]
    if not loud:
        return []
    remark = (
        f"other work took up to {max(loud):.0%} of the processors in {len(loud)} of {len(parts)} "
        f"parts, {quiet.OTHERS_MAX:.0%} are allowed of what is judged: times without network "
        "delay are too long; measure on a quieter machine"
    )
    return [remark]


class _Run:
    """One call of `measure`."""

    def __init__(
        self,
        study: Study,
        store: Store,
        cases: list[Cell],
        trials: int,
        part_trials: int,
        progress: Callable[[Progress], None],
    ) -> None:
        self._study = study
        self._store = store
        self._cases = {case.case_id: case for case in cases}
        self._parts = {
            case.case_id: seeds.cut(
                study.seed, case, trials, min(part_trials, driver_of(case).trials_a_part)
            )
            for case in cases
        }
        self._trials = trials
        self._progress = progress
        self._manifest: dict[str, Any] = {}
        # What the emulation of each case rests on; nothing known is assumed.
        self._evidence: dict[str, str] = {}
        # From the first part on, when the bench knows how quickly trials come.
        self._pace: Pace | None = None
        self._planned_s: Callable[[Part], float] = lambda _: 0.0
        self.summary = Summary(store.folder, "")
        self.to_do: list[Part] = []

    @property
    def has_something(self) -> bool:
        """Whether the manifest says more than that a measurement was begun."""
        return bool(self._manifest.get("cells") or self._manifest.get("rejections"))

    def begin(self, given: dict[str, Any], cases: list[Cell]) -> None:
        """Takes up an earlier run in the folder, or begins a new manifest."""
        earlier = self._store.manifest()
        versions = {name: tools.version(name) for name in _TOOLS}
        for cell in self._cases.values():
            versions |= driver_of(cell).versions(cell)
        base: dict[str, Any] = {
            "schema_version": _core.SCHEMA_VERSION,
            "study": {"name": self._study.name, "sha256": "", "text": ""},
            **given,
            "half": "measured",
            "seed": self._study.seed,
            "run_id": _new_run_id(),
            "started": _now(),
            "finished": None,
            "complete": False,
            "machine": kernel.machine({}),
            "tools": {**given.get("tools", {}), **versions},
            "methods": ["emulated"],
            "cases": given.get("cases") or list(map(_case_used, cases)),
            "link_reports": {},
            "files": {},
            "cells": {},
            "rejections": [],
        }
        if earlier is not None:
            _refuse_mixture(self._store.folder, earlier, base, versions)
            for key in ("run_id", "started", "link_reports", "files", "cells", "rejections"):
                base[key] = earlier.get(key, base[key])
            # What was predicted after it was begun was not registered.
            base["registered"] = earlier.get("registered")
            base["machine"]["tcp"] = earlier.get("machine", {}).get("tcp", {})
        self._evidence = {case["case_id"]: case["evidence"] for case in base["cases"]}
        base["evidence"] = sorted({self._evidence.get(key, "assumed") for key in self._cases})
        base["skipped"] = self.summary.skipped
        base["warnings"] = self.summary.warnings
        self._manifest = base
        self.summary.run_id = base["run_id"]
        unfinished = [parts for key, parts in self._parts.items() if not self._is_finished(key)]
        order = seeds.interleave(self._study.seed, unfinished)
        self.to_do = [part for part in order if not self._has_part(part)]
        self._store.write_manifest(self._manifest)
        self._say_what_stands()
        # All parts there, but not put together: the run was cut between the two.
        for case_id in self._cases:
            self._finish_if_whole(case_id)

    def all_parts(self, bench: Bench, stop: Callable[[], bool]) -> None:
        """Measures what is to do, in its order; what is rejected too often comes last."""
        put_off: dict[Part, RunRejected] = {}
        vain = 0
        with bench:
            self._pilots(bench, stop)
            self._planned_s = lambda part: planned_s(bench, self._cases[part.case_id], part)
            self._pace = Pace(time.monotonic())
            self._tell("")
            while self.to_do and not stop():
                interruption.check()
                part = self.to_do[0]
                label = self._cases[part.case_id].label
                try:
                    finished = self._one_part(bench, part, stop)
                except RunRejected as rejection:
                    self.to_do.pop(0)
                    again = part in put_off
                    put_off[part] = rejection
                    if not again:
                        self.to_do.append(part)
                        continue
                    vain += 1
                    self._give_up(part, rejection)
                    if vain == PATIENCE:
                        for other in self.to_do:
                            self._give_up(other, put_off[other])
                        return
                    continue
                except LabError as error:
                    raise _labelled(error, label) from error
                if not finished:
                    return
                vain = 0
                self.to_do.pop(0)
                self._pace.accepted(self._planned_s(part))
                self._finish_if_whole(part.case_id)
                self._tell(label)

    def _pilots(self, bench: Bench, stop: Callable[[], bool]) -> None:
        """Finds the rate of each cell that needs it, so that the time left is known from the first
        part on."""
        for case_id, cell in self._cases.items():
            parts = [part for part in self.to_do if part.case_id == case_id]
            if stop() or not bench.rates.needs_pilot(cell, [part.trials for part in parts]):
                continue
            interruption.check()
            self._tell(cell.label, PILOT)
            try:
                bench.pilot(cell, parts[0], stop)
            except LabError as error:
                raise _labelled(error, cell.label) from error

    def _give_up(self, part: Part, last: RunRejected) -> None:
        self.summary.given_up[self._cases[part.case_id].label] = (
            f"every attempt was rejected ({last}); {last.advice('run the same command again')}"
        )

    def end(self) -> None:
        """Closes the manifest."""
        self.summary.warnings += self._noise()
        self._manifest["warnings"] = self.summary.warnings
        self._manifest["skipped"] = {**self.summary.skipped, **self.summary.given_up}
        done = all(self._is_finished(case_id) for case_id in self._cases)
        self.summary.complete = done and not self.summary.skipped
        self.summary.measured = [key for key in self._cases if self._is_finished(key)]
        self.summary.rejections = len(self._manifest["rejections"])
        self.summary.causes = causes.counted(one["reasons"] for one in self._manifest["rejections"])
        changed = self._manifest["complete"] != self.summary.complete
        if changed or self.to_do or self.summary.given_up or done:
            self._manifest["complete"] = self.summary.complete
            self._manifest["finished"] = _now() if done else None
            self._store.write_manifest(self._manifest)

    def _noise(self) -> list[str]:
        """A remark if other work took much of the processors."""
        of_cells = (
            measured_parts.parts_of(self._manifest, case_id, self._store.folder)
            for case_id in self._manifest["cells"]
        )
        return noise([part for of_cell in of_cells for part in of_cell])

    def _one_part(self, bench: Bench, part: Part, stop: Callable[[], bool]) -> bool:
        """Measures a part, again if it is rejected; False if it was stopped.

        Raises the last RunRejected after `MAX_ATTEMPTS`.
        """
        case = self._cases[part.case_id]
        for attempt in range(1, MAX_ATTEMPTS + 1):
            interruption.check()
            try:
                result = bench.run(case, part, stop)
            except RunRejected as rejection:
                self._reject(part, rejection)
                if attempt == MAX_ATTEMPTS:
                    raise
                continue
            if result is None:
                return False
            self._manifest["machine"]["tcp"] = result.record.pop("tcp")
            self._store.write_part(
                part, result.trials, result.record, result.packets, self._manifest["run_id"]
            )
            break
        return True

    def _reject(self, part: Part, rejection: RunRejected) -> None:
        entry = {
            "case_id": part.case_id,
            "first_trial": part.first_trial,
            "trials": part.trials,
            "at": _now(),
            "reasons": str(rejection),
            "report": rejection.report,
        }
        self._manifest["rejections"].append(entry)
        self._store.write_manifest(self._manifest)
        message = ""
        if self._pace is not None:
            self._pace.reject()
            if self._pace.rejected == 1:
                message = (
                    f"a part was rejected unseen and is measured again: {rejection}; others are "
                    "counted, and their reasons kept in the manifest"
                )
        self._tell(self._cases[part.case_id].label, message)

    def _finish_if_whole(self, case_id: str) -> None:
        parts = self._parts[case_id]
        if self._is_finished(case_id) or not all(map(self._has_part, parts)):
            return
        files = self._manifest["files"]
        earlier = [name for name in files if self._store.is_of(name, case_id)]
        if earlier:
            for name in earlier:
                del files[name]
            # A reader between the two writes must not take a new file for a damaged one.
            self._store.write_manifest(self._manifest)
        records, written = self._store.finish_case(
            self._study.name,
            self._cases[case_id].canonical,
            self._manifest["run_id"],
            self._evidence.get(case_id, "assumed"),
            parts,
            driver_of(self._cases[case_id]).columns,
        )
        self._manifest["files"] |= written
        self._manifest["link_reports"][case_id] = [record.pop("link") for record in records]
        self._manifest["cells"][case_id] = {"trials": self._trials, "parts": records}
        self._store.write_manifest(self._manifest)
        self._store.drop_parts(case_id)

    def _has_part(self, part: Part) -> bool:
        columns = driver_of(self._cases[part.case_id]).columns
        return self._store.has_part(part, self._manifest["run_id"], columns)

    def _is_finished(self, case_id: str) -> bool:
        cell = self._manifest["cells"].get(case_id)
        return cell is not None and cell["trials"] >= self._trials and self._store.has_case(case_id)

    def _say_what_stands(self) -> None:
        """Whether finished cells are kept with more trials than were asked for, or replaced, and
        whether there are others."""
        cells = self._manifest["cells"]
        asked = {case["case_id"] for case in self._manifest["cases"]}
        others = sum(key not in asked and self._store.has_case(key) for key in cells)
        if others:
            self._tell(
                "",
                f"{self._store.folder}: has {others} measured {'case' if others == 1 else 'cases'} "
                "of another question as well; they stay, and are shown when they are asked for",
            )
        counts = [
            cells[key]["trials"]
            for key in self._cases
            if key in cells and self._store.has_case(key)
        ]
        if kept := [count for count in counts if count > self._trials]:
            self._tell(
                "",
                f"{self._store.folder}: {len(kept)} of {len(self._cases)} cases keep the "
                f"{_span(kept)} trials that they have, more than the {self._trials} asked for; to "
                "measure them anew, choose another folder",
            )
        if replaced := [count for count in counts if count < self._trials]:
            self._tell(
                "",
                f"{self._store.folder}: {len(replaced)} of {len(self._cases)} cases have "
                f"{_span(replaced)} trials and are measured anew with {self._trials}; what they "
                "have stands until then",
            )

    def _tell(self, label: str, message: str = "") -> None:
        done = sum(self._is_finished(case_id) for case_id in self._cases)
        left = sum(part.trials for part in self.to_do)
        all_trials = self._trials * len(self._cases)
        seconds, rejected, overdue = None, 0, False
        if self._pace is not None:
            planned = sum(map(self._planned_s, self.to_do))
            seconds = self._pace.left(planned, time.monotonic())
            rejected, overdue = self._pace.rejected, self._pace.overdue
        self._progress(
            Progress(
                done,
                len(self._cases),
                all_trials - left,
                all_trials,
                label,
                message,
                seconds,
                rejected,
                overdue,
            )
        )


def _labelled(error: LabError, label: str) -> LabError:
    return type(error)(f"{label}: {error}" if label else str(error))


def planned_s(bench: Bench, case: Cell, part: Part) -> float:
    """What a part takes where all goes well."""
    return part.trials / bench.rate(case) + PART_OVERHEAD_S


_TOOLS = ("ip", "warifu-link")
"""What runs whatever the protocol is."""


def _case_used(case: Cell) -> dict[str, Any]:
    """A case of a study whose profiles the caller did not hand over: nothing known is assumed."""
    return {
        "case_id": case.case_id,
        "label": case.label,
        "evidence": "assumed",
        "case": json.loads(case.canonical),
    }


def _refuse_mixture(
    folder: Path, earlier: dict[str, Any], now: dict[str, Any], versions: dict[str, str]
) -> None:
    """A folder holds results of one machine with one set of tools, or they are not one result."""
    said = {
        "study": (earlier.get("study", {}).get("name"), now["study"]["name"]),
        "seed": (earlier.get("seed"), now["seed"]),
        "half": (earlier.get("half"), now["half"]),
        "schema_version": (earlier.get("schema_version"), now["schema_version"]),
    }
    for key in ("kernel", "processor"):
        said[key] = (earlier.get("machine", {}).get(key), now["machine"][key])
    for key, version in versions.items():
        said[key] = (earlier.get("tools", {}).get(key), version)
    for key, (before, after) in said.items():
        if before != after:
            difference = f"{key} {before!r}, now it is {after!r}"
            raise ResultsMixed(folder, difference, str(earlier.get("run_id", "unknown")))


def _span(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def _new_run_id() -> str:
    now = datetime.datetime.now(datetime.UTC)
    return f"measured-{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
