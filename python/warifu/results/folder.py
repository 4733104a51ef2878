# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading a results folder: `manifest.json` beside `observations/*.parquet`.

The schema is that of crates/core/results; comparing and reporting read results through here
and know nothing else of what wrote them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

import warifu._core as _core
from warifu.printable import clipped
from warifu.results import metrics
from warifu.results.boards import Boards, OnBoards, read_boards
from warifu.results.distribution import Distribution
from warifu.results.limits import refuse_too_many
from warifu.results.manifest import (
    MEASURED,
    NOISE,
    PREDICTED,
    WRITTEN_AS,
    ResultsDamaged,
    ResultsError,
    check_file,
    check_files,
    damaged,
    is_assumed,
    not_usable,
    read_manifest,
    what_of,
)
from warifu.results.noise import Noise, read_noise
from warifu.results.parts import Part, parts_of
from warifu.results.sealed_json import not_as_written
from warifu.results.strata import StrataOfCase, read_strata
from warifu.results.trials import Trials, trials_of
from warifu.results.values import check_numbers, check_settings, check_values
from warifu.results.version_1 import POLARS_TYPES, upgraded

FAILED = "connection.failed"
#: Kinds of a profile's figures, from the strongest to the weakest (warifu_model::Kind).
KINDS = ("measured", "emulated", "simulated", "published", "assumed")

#: What a setting of a case may be; None where nothing applies.
Setting = str | bool | int | float | None

#: What sums of probabilities may lack to one by rounding alone.
_ROUNDING = 1e-9

#: Columns that are no setting of a case.
_OBSERVATION = {"study", "case_id", "run_id", "connection", "trial", "metric", "stage", "step"}
_OBSERVATION |= {"from_ns", "until_ns", "value", "unit", "weight", "exact"}
_OBSERVATION |= {"method", "evidence", "seed"}

#: The columns of observations with their types, and which of them may be null.
_TYPES = {name: POLARS_TYPES[kind] for name, kind, _, _ in _core.columns()}
_NULLABLE = {name for name, _, _, nullable in _core.columns() if nullable}
_SETTINGS = [name for name in _TYPES if name not in _OBSERVATION]
#: From the narrowest to the widest.
_UNSIGNED = (pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
#: The columns that are read; the others are for people who look into the files.
_READ = [name for name in _TYPES if name in _OBSERVATION - {"study", "step", "until_ns", "seed"}]


@dataclass
class Results:
    """One half of a study's results."""

    path: Path
    manifest: dict[str, Any]
    #: The settings of each case by column name, in the order of the study.
    cases: dict[str, dict[str, Setting]]
    #: The file of observations that each case is in.
    _places: dict[str, Path] = field(default_factory=dict, repr=False)
    #: The manifest whose files are read, whatever becomes of the other.
    _as_opened: dict[str, Any] = field(default_factory=dict, repr=False)
    _frames: dict[str, pl.DataFrame] = field(default_factory=dict, repr=False)
    _labels: dict[str, str] = field(default_factory=dict, repr=False)
    _boards: Boards | None = field(default=None, repr=False)
    _strata: Mapping[str, StrataOfCase] | None = field(default=None, repr=False)
    _noise: Mapping[str, Mapping[str, Noise]] | None = field(default=None, repr=False)

    @staticmethod
    def open(path: Path | str) -> Results:
        """Reads the manifest and the list of cases.

        Raises ResultsError if the folder is none, is empty, or is of another version;
        ResultsDamaged, here or when rows are read, if it is not as it was written.
        """
        path = Path(path)
        manifest = read_manifest(path)
        parts = _parts(path)
        check_files(path, manifest, parts)
        if not parts:
            raise ResultsError(
                f"{path}: holds no observations: run `warifu predict` or `warifu measure` again"
            )
        cases, places = _cases(path, manifest)
        return Results(path, manifest, cases, places, _as_opened=dict(manifest))

    @property
    def half(self) -> str:
        """`predicted` or `measured`."""
        return str(self.manifest.get("half", ""))

    @property
    def run_id(self) -> str:
        """Names the run."""
        return str(self.manifest.get("run_id", ""))

    @property
    def study(self) -> str:
        """The study's name."""
        return str(self.manifest.get("study", {}).get("name", ""))

    @property
    def complete(self) -> bool:
        """Whether every case has all of its trials."""
        return bool(self.manifest.get("complete", False))

    def whole(self, case_id: str) -> str:
        """The metric of a case that is judged: its whole time, which stages divide; of a stream,
        whose samples nobody answers, the way there."""
        if self.is_stream(case_id):
            return metrics.WHOLE_OF_STREAM
        return metrics.whole(self._protocol(case_id))

    def phases(self, case_id: str) -> tuple[str, ...]:
        """The metrics of a case that are parts of its whole time, in their order."""
        return metrics.phases(self._protocol(case_id))

    def later(self, case_id: str) -> tuple[str, ...]:
        """The times of a case's connections that end after its whole time."""
        whole = self.whole(case_id)
        return tuple(one for one in metrics.later(self._protocol(case_id)) if one != whole)

    def is_stream(self, case_id: str) -> bool:
        """Whether a case's messages are sent at a rate, and not answered."""
        return self.cases[case_id].get("pattern") == "stream"

    def has_metric(self, case_id: str, metric: str) -> bool:
        """Whether a case has a metric: one of HTTPS does not apply to CoAP, and one of a scenario
        takes several connections."""
        several = self.concurrent(case_id) > 1 or not metrics.is_of_scenario(metric)
        return several and metric in metrics.of(self._protocol(case_id))

    def _protocol(self, case_id: str) -> str:
        return str(self.cases[case_id]["protocol"])

    def rows(self, case_id: str) -> pl.DataFrame:
        """The observations of one case, without its settings: metric, stage, value, weight, ...

        `stage` is null for the whole metric. Spans of a timeline are not among them.
        """
        if case_id not in self._frames:
            part = self._places.get(case_id)
            # One file at a time is kept: a folder may be larger than the memory.
            self._frames = self._read_part(part) if part is not None else {}
            if case_id not in self._frames:
                raise damaged(part or self.path, f"has no case {case_id}")
        return self._frames[case_id]

    def _read_part(self, part: Path) -> dict[str, pl.DataFrame]:
        """The observations of every case in a file."""
        rows = _read(self.path, self.manifest, [part], _without_timelines)
        check_values(rows, part, self._as_opened or self.manifest, self.concurrent)
        cases = rows.partition_by("case_id", include_key=False, as_dict=True)
        return {str(key[0]): of for key, of in cases.items()}

    def in_files(self, case_ids: Iterable[str]) -> list[str]:
        """The same cases in the order in which they are read fastest, file by file."""
        return sorted(case_ids, key=lambda one: str(self._places.get(one, "")))

    def distribution(self, case_id: str, metric: str) -> Distribution:
        """A metric of a case, ns, B or 1; what failed counts as censored in times.

        `connection.failed` has rows of failed connections alone; here it is 0 for all others. The
        same holds for `scenario.failed`. Of an exact distribution the residual is what the case's
        probabilities lack to one.
        """
        frame = self.rows(case_id).filter(pl.col("stage").is_null())
        of_scenario = metrics.is_of_scenario(metric)
        concurrent = 1 if of_scenario else self.concurrent(case_id)
        exact = bool(frame["exact"].any())
        left_out = self._left_out(case_id, frame) if exact else 0.0
        failed = _failures(frame, metrics.failure_of(metric))
        if metrics.is_failure(metric):
            whole = metrics.whole_of_scenario() if of_scenario else self.whole(case_id)
            completed = frame.filter(pl.col("metric") == whole)["weight"].sum()
            counts = [float(completed), failed]
            return Distribution.of(
                [0.0, 1.0],
                counts,
                concurrent=concurrent,
                exact=exact,
                residual=_share(left_out, sum(counts)),
                noise=self.noise(case_id, metric) if exact else None,
            )
        rows = frame.filter(pl.col("metric") == metric)
        failed = failed if metrics.is_time(metric) else 0.0
        return Distribution.of(
            rows["value"].to_numpy(),
            rows["weight"].to_numpy(),
            failed=failed,
            concurrent=concurrent,
            exact=exact,
            residual=_share(left_out, float(rows["weight"].sum()) + failed),
            noise=self.noise(case_id, metric) if exact else None,
        )

    def noise(self, case_id: str, metric: str) -> Noise | None:
        """How sure the probabilities of a case of the exact tier are; None where its results do not
        say, which are of an older version or of very many cases."""
        if self._noise is None:
            self._noise = read_noise(self.path, self.manifest)
        of_case = self._noise.get(case_id)
        if of_case is None and self._noise and case_id in self.cases:
            raise not_as_written(self.path / NOISE, f"lacks case {clipped(case_id)}")
        return (of_case or {}).get(metric)

    def _left_out(self, case_id: str, frame: pl.DataFrame) -> float:
        """The probability of what was not enumerated of a case whose weights are probabilities:
        what those of its whole time and of failing lack to one (crates/core/results, Weights)."""
        whole = frame.filter(pl.col("metric") == self.whole(case_id))["weight"].sum()
        lacking = 1.0 - float(whole) - _failures(frame, FAILED)
        return lacking if lacking > _ROUNDING else 0.0

    def on_boards(self, case_id: str, metric: str | None = None) -> OnBoards | None:
        """A time of a case, the whole one without ``metric``, on each of the boards that its
        device's assumed figures allow. None for a case whose boards are all alike, and for a metric
        of which that is not known."""
        return self._on_boards().get(case_id, {}).get(metric or self.whole(case_id))

    def strata(self, case_id: str) -> StrataOfCase | None:
        """A predicted case's connections by what their clients know of losses; None where that is
        not known."""
        if self._strata is None:
            self._strata = read_strata(self.path, self.manifest)
        return self._strata.get(case_id)

    def trials(self, case_id: str, metric: str | None = None) -> Trials:
        """The single trials of a case, by the whole time or another; each with its part. Raises
        ResultsDamaged where the case has parts and a trial is of none."""
        frame, parts = self.rows(case_id).filter(pl.col("stage").is_null()), self.parts(case_id)
        found = trials_of(frame, metric or self.whole(case_id), parts)
        if parts and found.part is None:
            said = f"cells.{clipped(case_id)}.parts do not hold every trial of the case"
            raise not_usable(self.path, said)
        return found

    def parts(self, case_id: str) -> list[Part]:
        """The parts that a case was measured in; none where that is not known."""
        return parts_of(self.manifest, case_id, self.path)

    def has_boards(self, case_id: str | None = None) -> bool:
        """Whether the boards of a case, or of any, differ."""
        return bool(self._on_boards()) if case_id is None else case_id in self._on_boards()

    @property
    def lacks_boards(self) -> bool:
        """Whether a prediction was cut short before the boards were compared that a device's
        assumed figures allow."""
        if self.half != PREDICTED or self.complete:
            return False
        figures = self.manifest.get("figures") or []
        return any(
            is_assumed(figure) and what_of(figure).get("of") == "device" for figure in figures
        )

    def _on_boards(self) -> Boards:
        if self._boards is None:
            self._boards = read_boards(self.path, self.manifest)
        return self._boards

    def failures(self, case_id: str) -> float:
        """Connections of a case that got no response."""
        return _failures(self.rows(case_id).filter(pl.col("stage").is_null()), FAILED)

    def failed_share(self, case_id: str, metric: str = FAILED) -> float:
        """The share of a case's connections that got no response, 0 to 1; for a metric of
        scenarios the share of those of which a connection got none."""
        failed = self.distribution(case_id, metrics.failure_of(metric))
        return failed.mean() if failed.n else 0.0

    def method(self, case_id: str) -> str:
        """How a case's observations were obtained: `measured`, `emulated` or `simulated`."""
        methods = self.rows(case_id)["method"].unique().sort().to_list()
        return ", ".join(map(str, methods))

    def evidence(self, case_id: str) -> str:
        """The weakest evidence among what a case's observations rest on."""
        try:
            return weakest(self.rows(case_id)["evidence"].unique().to_list())
        except _core.WarifuError as error:
            raise ResultsDamaged(f"{self.path}: case {case_id}: {error}") from None

    def stages(self, case_id: str, slowest: bool = False) -> dict[str, float]:
        """Mean time in each stage of a connection that got its response, ns; empty where none was
        recorded.

        With ``slowest`` only the band of the slowest trials (crates/core/results,
        Rows::push_stages); of a measurement's single trials, the slowest hundredth.
        """
        rows = self.rows(case_id).filter(
            (pl.col("metric") == self.whole(case_id)) & pl.col("stage").is_not_null()
        )
        if rows.is_empty():
            return {}
        of = ["connection", "trial"]
        # A trial's rows all have its weight. A stage without a row took it no time, and yet the
        # trial counts in that stage's mean.
        trials = rows.group_by(of).agg(pl.col("value").sum(), pl.col("weight").max())
        if slowest:
            trials = trials.top_k(max(1, trials.height // 100), by="value")
            rows = rows.join(trials.select(of), on=of, how="semi")
        count = float(trials["weight"].sum())
        total = (pl.col("value") * pl.col("weight")).sum()
        stages = rows.group_by("stage").agg(total.alias("total"))
        return {str(stage): float(value) / count for stage, value in stages.iter_rows()}

    def shortfall(self) -> str:
        """What of its study a half has that is not complete: `18 of 10,000 trials`; empty for one
        that is."""
        if self.complete:
            return ""
        every = len(self.manifest["cases"])
        # A study of very many cases lists none; it has what its lists span.
        every = every or math.prod(len(values) for _, values in self.manifest["vary"])
        parts = []
        if len(self.cases) < every:
            parts.append(f"{len(self.cases):,} of {every:,} cases")
        asked = self.manifest["predict_trials"] if self.half == PREDICTED else None
        if asked and (least := round(min(self._trials(), default=0.0))) < asked:
            parts.append(f"{least:,} of {asked:,} trials")
        if not parts and self.lacks_boards:
            return "its boards were not compared"
        return "; ".join(parts) or "some of its cases or trials are missing"

    def _trials(self) -> Iterator[float]:
        """How many trials each case has."""
        names = (*metrics.all_wholes(), FAILED)
        for part in each_part(self.path, names):
            for case_id, weight in part.group_by("case_id").agg(pl.col("weight").sum()).iter_rows():
                yield float(weight) / self.concurrent(case_id)

    def concurrent(self, case_id: str) -> int:
        """How many connections a trial of the case opens at once."""
        concurrent = self.cases.get(case_id, {}).get("concurrent")
        return max(1, concurrent) if isinstance(concurrent, int) else 1

    def label(self, case_id: str) -> str:
        """A short name for people: what tells this case from the study's others."""
        if not self._labels:
            # All at once: in a sweep of many cases each alone would look at all the others.
            given = {case["case_id"]: case["label"] for case in self.manifest["cases"]}
            own = labels(self.cases)
            self._labels = {one: given.get(one) or own[one] for one in self.cases}
        return self._labels.get(case_id, case_id)


_OF_ONE_PROGRAM = {
    "emulated": "a run of one program on the simulated Cortex-M3",
    "board": "a run of one program on a board",
    "profiled": "what `warifu dds profile` saw of one command",
}


def halves(path: Path) -> tuple[Path | None, Path | None]:
    """The predicted and the measured folder at or below ``path``, where there are any.

    Raises ResultsError for a folder that is of neither half, ResultsDamaged for one whose manifest
    is gone.
    """
    if (path / "manifest.json").exists():
        half = read_manifest(path)["half"]
        if half == PREDICTED:
            return path, _if_results(path.parent / MEASURED)
        if half == MEASURED:
            return _if_results(path.parent / PREDICTED), path
        raise ResultsError(
            f"{path}: holds {_OF_ONE_PROGRAM.get(half, 'a run of one program')}, which is neither "
            "half of a study: name a folder made by `warifu predict` or `warifu measure`"
        )
    return _if_results(path / PREDICTED), _if_results(path / MEASURED)


def interruptions(*of: Results | None) -> list[str]:
    """What of its study each half has that was cut short, a sentence each."""
    return [
        f"The {half.half} half is not complete: {what} (interrupted). Run the study again for the "
        "rest."
        for half in of
        if half is not None and (what := half.shortfall())
    ]


def each_part(path: Path, names: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    """Whole-metric rows of a folder, one file at a time: case_id, metric, value, weight,
    method, evidence.

    A case is never split over files, so memory stays bounded however large the study is.
    """
    manifest = read_manifest(path)
    for part in _parts(path):
        rows = _read(
            path,
            manifest,
            [part],
            lambda rows: _without_timelines(
                rows.filter(
                    pl.col("metric").cast(pl.String).is_in(names), pl.col("stage").is_null()
                )
            ),
        )
        check_numbers(rows, part)
        yield rows.select("case_id", "metric", "method", "evidence", "value", "weight")


def weakest(evidence: list[str]) -> str:
    """The weakest of the given evidence; `assumed` for none (warifu_model::Evidence)."""
    return _core.weakest_evidence(evidence)


def labels(cases: dict[str, dict[str, Setting]]) -> dict[str, str]:
    """A short name of each case from the columns in which the cases differ."""
    columns: dict[str, set[Setting]] = {}
    for choices in cases.values():
        for column, value in choices.items():
            columns.setdefault(column, set()).add(value)
    varying = [column for column, values in columns.items() if len(values) > 1]
    # The suite follows from version, certificate and AEAD; alone it does not tell more.
    if len(varying) > 1 and "tls" in varying:
        varying = [column for column in varying if column != "cipher_suite"]
    # The quantiles say it all, and so does the mean of independent loss.
    if "jitter" in varying:
        varying = [column for column in varying if column not in _JITTER]
    if not any(column in varying for column in _BURSTS):
        varying = [one for one in varying if one not in {"loss_model", "loss_probability"}]
    varying.sort(key=lambda column: _LABEL_ORDER.get(column, len(_LABEL_ORDER)))
    if not varying:
        # All that a reader would have to guess, defaults among it.
        varying = [one for one in _ALONE if columns.get(one, {None}) != {None}]
        if columns.get("tls", {None}) == {None}:
            # Without TLS nothing is signed, whatever key store there is.
            varying = [column for column in varying if column != "key_store"]
    return {
        case_id: " · ".join(_words(column, settings.get(column)) for column in varying) or case_id
        for case_id, settings in cases.items()
    }


#: What the label of a study's only case says: all that a reader would have to guess.
_ALONE: tuple[str, ...] = ("protocol", "coap_type", "dds_middleware", "dds_crypto", "dds_aead")
_ALONE += ("tls", "session", "authentication", "key_store", "rtt_ns", "loss_mean")

_MIDDLEWARE = {"cyclonedds": "Cyclone DDS", "fastdds": "Fast DDS"}

#: What follows from the quantiles of jitter.
_JITTER = ("jitter_mean_ns", "jitter_max_ns")

#: Parameters of loss in bursts.
_BURSTS = ("loss_good_to_bad", "loss_bad_to_good", "loss_good", "loss_bad")

_LABEL_ORDER = {
    name: order
    for order, name in enumerate(
        ("tls", "session", "rtt_ns", "loss_mean", "device", "key_store", "link")
    )
}


def _words(column: str, value: Setting) -> str:
    if column == "tls":
        return "no TLS" if value is None else f"TLS {value}"
    if column == "rtt_ns" and isinstance(value, int):
        return f"RTT {duration(value)}"
    if column == "loss_mean" and isinstance(value, float):
        return f"loss {value * 100:g} %" if value else "no loss"
    if value is None:
        return f"no {column}"
    if column == "authentication":
        return "key from outside" if value == "psk" else f"{value} authentication"
    if column == "request_body":
        return f"upload {value} B" if value else "no upload"
    if column == "dds_middleware":
        return _MIDDLEWARE.get(str(value), str(value))
    if column == "dds_crypto":
        return "no security" if value == "none" else f"{value} plugin"
    if column == "key_store":
        return f"key store {value}"
    if column in {"session", "device", "link", "group", "protocol", "coap_type", "dds_aead"}:
        return str(value)
    return f"{column} {str(value).lower() if isinstance(value, bool) else value}"


def duration(nanos: float) -> str:
    """`60 ms` for 60000000 ns."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanos >= size:
            return f"{nanos / size:g} {unit}"
    return f"{nanos:g} ms" if nanos == 0 else f"{nanos:g} ns"


def _if_results(path: Path) -> Path | None:
    """The folder of a half; a half that was begun, and of which nothing came, is none.

    Raises ResultsDamaged where there are observations without their manifest.
    """
    if not (path / "manifest.json").exists():
        if _parts(path):
            raise ResultsDamaged(
                f"{path / 'manifest.json'}: is missing, but observations are beside it: put it "
                f"back, or move {path} away"
            )
        return None
    if _parts(path):
        return path
    manifest = read_manifest(path)
    # Files that it lists and that are gone are told when it is opened.
    return path if manifest["files"] or manifest["complete"] else None


def _parts(path: Path) -> list[Path]:
    return sorted((path / "observations").glob("[!.]*.parquet"))


def _read(
    path: Path,
    manifest: dict[str, Any],
    parts: list[Path],
    query: Callable[[pl.LazyFrame], pl.LazyFrame],
) -> pl.DataFrame:
    """What ``query`` asks of files of observations, once they are known to be as written."""
    for part in parts:
        check_file(path, manifest, part)
    try:
        for part in parts:
            refuse_too_many(manifest, part)
        rows = pl.scan_parquet(parts, glob=False)
        if manifest[WRITTEN_AS] == 1:
            rows = upgraded(rows, manifest)
        if "exact" not in rows.collect_schema():
            # Version 2 had no exact distributions at first.
            rows = rows.with_columns(pl.lit(value=False).alias("exact"))
        _check_columns(rows.collect_schema(), parts[0])
        return query(rows).collect(engine="streaming")
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise damaged(_culprit(parts), f"cannot be read ({first})") from None


def _without_timelines(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The observations among rows, without settings."""
    return rows.filter(pl.col("from_ns").is_null()).select(
        pl.col("case_id", "metric", "stage", "method", "evidence", "unit", "run_id").cast(
            pl.String
        ),
        "connection",
        "trial",
        "value",
        "weight",
        "exact",
    )


def _check_columns(found: Mapping[str, pl.DataType], part: Path) -> None:
    """Raises ResultsDamaged for columns that are not those of observations."""
    for name in [*_READ, *(name for name in _SETTINGS if name in found)]:
        if name not in found:
            raise damaged(part, f"has no column {name}")
        kind, expected = found[name], _TYPES[name]
        is_text = expected == pl.String and kind in (pl.Categorical, pl.Enum)
        # A column of which nothing is known may have lost its type.
        is_empty = kind == pl.Null and name in _NULLABLE
        if kind != expected and not is_text and not is_empty and not _is_narrower(kind, expected):
            raise damaged(part, f"column {name} is of type {kind}, not {expected}")


def _is_narrower(found: pl.DataType, expected: type[pl.DataType]) -> bool:
    """Whether both are unsigned integers and every value of the one is a value of the other."""
    if found not in _UNSIGNED or expected not in _UNSIGNED:
        return False
    return _UNSIGNED.index(found) < _UNSIGNED.index(expected)


def _widened(found: Mapping[str, pl.DataType]) -> list[pl.Expr]:
    """Columns that are narrower than now, cast: `server_workers` and `concurrent` had 16 bits in
    version 2 at first, and other readers need not know."""
    return [
        pl.col(name).cast(_TYPES[name])
        for name, kind in found.items()
        if name in _TYPES and _is_narrower(kind, _TYPES[name])
    ]


def _culprit(parts: list[Path]) -> Path:
    """The first of some files that does not open, or the first."""
    for part in parts:
        try:
            pl.scan_parquet(part, glob=False).collect_schema()
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return part
    return parts[0]


def _share(part: float, rest: float) -> float:
    """How much of both together a part is, from 0 to below 1: something of the rest is left."""
    return min(part / (part + max(0.0, rest)), 1.0 - _ROUNDING) if part else 0.0


def _failures(frame: pl.DataFrame, metric: str) -> float:
    failed = frame.filter(pl.col("metric") == metric)
    return float((failed["value"] * failed["weight"]).sum())


#: Cases of a file of observations, each with its settings as Python's objects, some kilobytes; a
#: file begins a new one after 2 million rows, and a case has some twenty of its own at least.
_MOST_SETTINGS = 200_000


def _cases(
    path: Path, manifest: dict[str, Any]
) -> tuple[dict[str, dict[str, Setting]], dict[str, Path]]:
    """The settings of every case that has rows, in the order of the manifest, and its file. Where
    the manifest lists its cases, those of an earlier question that the folder still has are left
    out."""
    found: dict[str, dict[str, Setting]] = {}
    places: dict[str, Path] = {}
    for part in _parts(path):
        rows = _read(path, manifest, [part], _settings)
        if rows.height > _MOST_SETTINGS:
            raise damaged(part, f"has settings of more than {_MOST_SETTINGS:,} cases")
        check_settings(rows, part)
        for row in rows.to_dicts():
            case_id = str(row.pop("case_id"))
            # A run of one program has no protocol; without one a half has no metrics.
            if manifest["half"] in {PREDICTED, MEASURED}:
                _check_protocol(row.get("protocol"), case_id, part)
            found[case_id] = row
            places[case_id] = part
    order = {case["case_id"]: index for index, case in enumerate(manifest["cases"])}
    asked = {case_id: row for case_id, row in found.items() if not order or case_id in order}
    ordered = sorted(asked.items(), key=lambda item: (order.get(item[0], 0), item[0]))
    return dict(ordered), places


def _check_protocol(protocol: Setting, case_id: str, part: Path) -> None:
    """Raises ResultsDamaged unless it is a protocol that Warifu knows."""
    if not isinstance(protocol, str):
        raise damaged(part, f"case {case_id} has no protocol")
    try:
        metrics.whole(protocol)
    except _core.WarifuError as error:
        raise damaged(part, f"case {case_id}: {error}") from None


def _settings(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Each case with its settings, once."""
    settings = [
        name
        for name, kind in rows.collect_schema().items()
        # A run of one program has settings of its own; none is a list or a table.
        if name not in _OBSERVATION and not kind.is_nested() and kind != pl.Object
    ]
    return rows.select("case_id", *settings).unique().head(_MOST_SETTINGS + 1)
