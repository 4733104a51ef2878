# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Replays measured connections in the simulator: each packet meets the fate that the lab's link
logged for it.

Both halves then lost the same packets, so what they differ by is the simulator's error and not the
luck of the link. `write` puts the pairs of times beside the halves (`warifu.results.replay`);
comparing judges them.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from warifu import _core, provenance
from warifu.results import MEASURED, PREDICTED, Results, ResultsError
from warifu.results.manifest import not_usable
from warifu.results.packets import PartPackets, has_packets, parts_with_packets
from warifu.results.registration import version_words
from warifu.results.replay import ReplayOfCase, read_replay, write_replay
from warifu.study import COMMAND_LINE

#: Directions of packets and messages, as the lab keeps them.
_UP, _DOWN = 0, 1

#: Gets cases done and cases in all.
Progress = Callable[[int, int], object]


class ReplayRefused(Exception):  # noqa: N818 - what happened, not what it is
    """A log that does not belong to what is replayed; its text is one line that names both."""


class PredictorChanged(ReplayRefused):
    """The prediction is of another version of the simulator: a replay says nothing of it."""


@dataclass(frozen=True)
class _Connections:
    """The measured connections of a case that did not fail, by trial."""

    trials: list[int]
    parts: list[int]
    measured_ns: list[int]
    client_bytes: list[int]
    server_bytes: list[int]


def is_current(folder: Path) -> bool:
    """Whether the halves of a study's results were replayed as they are: a measurement that was
    taken up again keeps its run, and has more connections than were replayed."""
    try:
        predicted, measured = (Results.open(folder / half) for half in (PREDICTED, MEASURED))
        replays = read_replay(folder, predicted.run_id, measured.run_id)
        return bool(replays) and all(
            _is_whole(measured, case_id, replays.get(case_id))
            for case_id in measured.in_files(measured.cases)
            if case_id in predicted.cases and has_packets(measured.manifest, case_id)
        )
    except ResultsError:
        return False


def _is_whole(measured: Results, case_id: str, of: ReplayOfCase | None) -> bool:
    """Whether a replay has every connection of a case that did not fail."""
    connections = _connections(measured, case_id, [])
    trials = [] if connections is None else connections.trials
    return sorted([] if of is None else of.trials.tolist()) == trials


def write(folder: Path, progress: Progress = lambda done, of: None) -> Path | None:
    """Replays every measured case of a study's results that has a packet log, and writes
    `replay.json` into ``folder``; None where nothing was logged.

    Raises ReplayRefused for a log, or a prediction, that is not of what was measured, ResultsError
    for halves that cannot be read, and OSError where the file cannot be written.
    """
    predicted, measured = Results.open(folder / PREDICTED), Results.open(folder / MEASURED)
    if not any(has_packets(measured.manifest, one) for one in measured.cases):
        return None
    study = _study(predicted)
    place = {case.id: index for index, case in enumerate(study.cases)}
    cases = [one for one in measured.cases if one in place]
    found = {}
    for done, case_id in enumerate(cases):
        progress(done, len(cases))
        logged = _logged(measured, case_id)
        connections = None if logged is None else _connections(measured, case_id, logged.begins)
        if logged is not None and connections is not None:
            found[case_id] = _case(study, place[case_id], measured, case_id, logged, connections)
    if not found:
        return None
    progress(len(cases), len(cases))
    return write_replay(folder, predicted.run_id, measured.run_id, found)


def _study(predicted: Results) -> _core.Study:
    """The study as it was predicted, from the manifest alone."""
    manifest = predicted.manifest
    if not provenance.is_this_predictor(manifest.get("commit"), manifest.get("dirty")):
        raise PredictorChanged(
            f"{predicted.path}: was predicted by commit "
            f"{version_words(manifest.get('commit'), manifest.get('dirty'))}, and this is "
            f"{version_words(*provenance.version())}, which may predict otherwise: run "
            "`warifu predict` again"
        )
    study = manifest["study"]
    for one in manifest["profiles"]:
        if hashlib.sha256(str(one["text"]).encode()).hexdigest() != one.get("sha256"):
            raise ResultsError(
                f"{predicted.path}/manifest.json: the text of the {one['kind']} profile "
                f"{one['name']} is not what was predicted with (its SHA-256 differs): run "
                "`warifu predict` again"
            )
    profiles = [
        (one["kind"], one["name"], one["text"], one["name"]) for one in manifest["profiles"]
    ]
    overrides = [(str(key), str(value)) for key, value in study.get("overrides") or []]
    try:
        if study.get("file") == COMMAND_LINE:
            return _core.Study.from_choices(overrides, profiles)
        return _core.Study.parse(study["text"], str(study.get("file")), profiles, overrides)
    except _core.WarifuError as error:
        raise ResultsError(f"{predicted.path}/manifest.json: {error}") from None


@dataclass(frozen=True)
class _Logged:
    """What the link and the client told of a case's connections."""

    #: As `_core.replay` takes them.
    packets: pl.DataFrame
    #: Names and lengths of messages in their order, by trial and direction.
    messages: dict[tuple[int, int], list[tuple[str, int]]]
    #: The first trial of each part, ascending.
    begins: list[int]
    #: The kernel's time at connect(), by trial, where it is known; as `_core.replay` takes it.
    began: dict[int, tuple[int, int, int, int]]


def _logged(measured: Results, case_id: str) -> _Logged | None:
    parts = list(parts_with_packets(measured.path, measured.manifest, case_id))
    if not parts:
        return None
    packets = pl.concat([part.packets for part in parts])
    messages: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for part in parts:
        rows = part.messages.sort("trial", "direction", "message")
        for trial, direction, name, length in rows.select(
            "trial", "direction", "name", "bytes"
        ).iter_rows():
            messages.setdefault((trial, direction), []).append((name, length))
    # A stored log may begin before the client's reading of its clock, within a tolerance
    # (`warifu.results.packets`).
    columns = packets.sort("trial", maintain_order=True).select(
        "trial",
        (pl.col("direction") != _UP).alias("down"),
        pl.col("at_ns").clip(0),
        "seq",
        pl.col("payload").alias("len"),
        "ack",
        "flags",
        pl.col("delay_ns").fill_null(-1),
    )
    began = {trial: at for part in parts for trial, at in _kernel_times(part, measured.path)}
    return _Logged(columns, messages, [part.first_trial for part in parts], began)


def _kernel_times(part: PartPackets, path: Path) -> Iterator[tuple[int, tuple[int, int, int, int]]]:
    """The kernel's time at each trial's connect(). Raises ResultsDamaged for one that began before
    the ticks were read, which the lab does first."""
    ticks = part.ticks
    if ticks is None:
        return
    starts = part.packets.select("trial", "start_ns").unique("trial").drop_nulls()
    for trial, start_ns in starts.iter_rows():
        since_ns = start_ns - ticks.began_ns
        if since_ns < 0:
            raise not_usable(path, f"trial {trial} began before the ticks of its part were read")
        yield trial, (ticks.length_ns, ticks.jiffies, since_ns, start_ns)


def _case(
    study: _core.Study,
    index: int,
    measured: Results,
    case_id: str,
    logged: _Logged,
    connections: _Connections,
) -> ReplayOfCase:
    missing = set(connections.trials) - set(logged.packets["trial"].unique().to_list())
    if missing:
        raise ReplayRefused(
            f"{measured.path}: run {measured.run_id} measured trial {min(missing)} of case "
            f"{case_id}, and its packet log has no packet of it: it is of another run"
        )
    replayed = _core.replay(
        study,
        index,
        connections.trials,
        connections.measured_ns,
        _sizes(study, index, logged, connections.trials),
        {column.name: column.to_list() for column in logged.packets},
        [logged.began.get(trial) for trial in connections.trials],
    )
    _refuse_another_trace(connections, replayed, measured, case_id)
    unmatched = zip(replayed["only_simulated"], replayed["only_logged"], strict=True)
    ours = [np.inf if ns is None else float(ns) for ns in replayed["replayed_ns"]]
    return ReplayOfCase(
        np.array(connections.trials, dtype=np.int64),
        np.array(connections.parts, dtype=np.int64),
        np.array(ours, dtype=np.float64),
        np.array(connections.measured_ns, dtype=np.float64),
        np.array([same == 1 for same in replayed["same_sequence"]], dtype=np.bool_),
        np.array([None in pair or pair != (0, 0) for pair in unmatched], dtype=np.bool_),
        # They carry nothing: by them alone no connection is divergent.
        np.array([count != 0 for count in replayed["acknowledgements"]], dtype=np.bool_),
    )


def _refuse_another_trace(
    connections: _Connections,
    replayed: dict[str, list[int | None]],
    measured: Results,
    case_id: str,
) -> None:
    """Raises ReplayRefused where the simulator's messages are not those that were sent."""
    for end, sent in (("client", connections.client_bytes), ("server", connections.server_bytes)):
        pairs = zip(connections.trials, sent, replayed[f"{end}_bytes"], strict=True)
        for trial, theirs, ours in pairs:
            if ours is not None and ours != theirs:
                raise ReplayRefused(
                    f"{measured.path}: in trial {trial} of case {case_id} the {end} sent "
                    f"{theirs:,} B, and the trace of this prediction has {ours:,} B: "
                    "they are not the same exchange"
                )


def _connections(measured: Results, case_id: str, begins: list[int]) -> _Connections | None:
    """None of a case of which every connection failed."""
    names = [measured.whole(case_id), "bytes.client_sent", "bytes.server_sent"]
    rows = measured.rows(case_id).filter(pl.col("metric").is_in(names) & pl.col("stage").is_null())
    table = rows.pivot("metric", index="trial", values="value")
    if not set(names) <= set(table.columns):
        return None
    table = table.drop_nulls().sort("trial")
    trials, *values = (table[name].cast(pl.Int64).to_list() for name in ("trial", *names))
    return _Connections(trials, [bisect.bisect_right(begins, one) - 1 for one in trials], *values)


def _sizes(
    study: _core.Study, index: int, logged: _Logged, trials: list[int]
) -> list[list[tuple[int, int]]]:
    """The length of every message that varies, as the client told it.

    Raises ReplayRefused for one that the message of the trace cannot have.
    """
    varying = _core.varying_messages(study, index)
    sizes = []
    for trial in trials:
        found = []
        for number, client, name, before, least, most in varying:
            messages = logged.messages.get((trial, _UP if client else _DOWN), [])
            lengths = [length for other, length in messages if other == name]
            if before >= len(lengths):
                continue
            if not least <= lengths[before] <= most:
                raise ReplayRefused(
                    f"the {name} of trial {trial} had {lengths[before]:,} B, and in the trace of "
                    f"this prediction it has {least:,} to {most:,} B: they are not the same "
                    "exchange"
                )
            found.append((number, lengths[before]))
        sizes.append(found)
    return sizes
