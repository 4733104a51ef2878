# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Asking from a program: `warifu.ask`, and what it returns."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warifu import files, lock, prediction
from warifu._core import WarifuError
from warifu.printable import clipped, printable
from warifu.study import COMMAND_LINE, SHORT_NAMES, StudyError, bound, load

if TYPE_CHECKING:
    import polars as pl

    from warifu._core import CaseView
    from warifu.answer import Answer
    from warifu.results import Results
    from warifu.study import Loaded

Value = str | int | float | bool
"""A setting: a number with its unit is text, such as ``"60 ms"``."""

#: Rows of a table that a notebook or a prompt shows.
_SHOWN_ROWS = 20
#: Of a terminal that nobody has widened.
_COLUMNS = 80


def ask(
    study: str | os.PathLike[str] | None = None,
    *,
    device: str | None = None,
    server: str | None = None,
    key_store: str | None = None,
    link: str | None = None,
    stack: str | None = None,
    vary: Mapping[str, Sequence[Value]] | None = None,
    require: Mapping[str, str] | Sequence[str] | None = None,
    baseline: str | int | None = None,
    trials: int | None = None,
    threads: int | None = None,
    out: str | os.PathLike[str] | None = None,
    profiles: Sequence[str | os.PathLike[str]] | None = None,
    progress: Callable[[int, int, int], object] | None = None,
    **settings: Value,
) -> Prediction:
    """Simulates the cases of a question, as `warifu predict` does, and answers it.

    >>> import warifu
    >>> asked = warifu.ask(
    ...     device="xeon-2-5-ghz-vm", server="xeon-2-5-ghz-vm", link="lte-m",
    ...     stack="https/tls1.3", vary={"rtt": ["60 ms", "120 ms"]},
    ...     require=["https.establishment.p99 < 3 s"], trials=200,
    ... )
    >>> len(asked.cases)
    2
    >>> asked.frame()["rtt_ns"].to_list()
    [60000000, 120000000]

    ``study`` is a study's file; without one the choices below are the question, and what they leave
    open is as `warifu predict` has it by default. ``device``, ``server``, ``key_store`` and
    ``link`` are names of profiles, ``stack`` is such as ``"https/tls1.3/mutual"``. Any other
    setting is a keyword: ``rtt``, ``loss``, ``session`` and so on, as the command line's flags, or
    its dotted path: ``**{"stack.nagle": True}``; ``seed`` and ``name`` as well.

    ``vary`` has the values of each setting that varies, by the same names; each combination is a
    case. ``require`` are bounds such as ``"https.establishment.p99 < 3 s"``, or the same as a
    mapping. ``baseline`` is the case that the others are held against: its label, a part of it that
    no other has, or its number from 1; the first by default. ``trials`` are simulated connections a
    case, ``threads`` workers (all cores by default). ``profiles`` are folders of profiles that take
    the place of those that are searched by default. ``progress`` gets cases done, cases in all and
    trials done, some times a second.

    The results are kept in a temporary folder for as long as what is returned is in use; with
    ``out`` they are in that folder, as `warifu predict --out` writes them, and stay.

    Nothing is printed. Raises StudyError or WarifuError for a mistake in the question, whose text
    is one line that says what to change, and for an ``out`` where nothing can be written;
    ResultsError for a baseline that there is not; AnotherStudy or FolderBusy where ``out`` is not
    free.
    """
    case, workers = _baseline(baseline), _threads(threads)
    given = {"device": device, "server": server, "key_store": key_store, "link": link}
    choices: dict[str, Value] = {name: value for name, value in given.items() if value is not None}
    if stack is not None:
        choices["stack"] = stack
    choices |= settings
    overrides = [(_path(name), _text(name, value)) for name, value in choices.items()]
    if trials is not None:
        overrides.append(("predict_trials", _text("predict_trials", trials)))
    overrides += [(f"vary.{_path(name)}", _list(name, values)) for name, values in _varied(vary)]
    overrides += _bounds(require)
    _refuse_twice([path for path, _ in overrides])
    loaded = _load(study, overrides, profiles)
    return _predict(loaded, out, case, workers, progress)


class Prediction:
    """A simulated study: its answer, its tables, its report.

    Its results are in `folder`, which is removed with it where it is a temporary one: `close` does
    that at once, as the end of a ``with`` does.
    """

    def __init__(
        self,
        loaded: Loaded,
        folder: Path,
        skipped: Mapping[str, str],
        baseline: str | None,
        cleanup: weakref.finalize[..., Any] | None,
    ) -> None:
        """Reads what lies in ``folder``; made by `ask`."""
        from warifu.answer import answer
        from warifu.report.tables import judge_halves
        from warifu.results import Results

        self._loaded = loaded
        self._cleanup = cleanup
        self.folder = folder
        """Where the results are: `predicted` is below."""
        self.skipped = dict(skipped)
        """Why cases of the question could not be predicted, by their labels."""
        self.results: Results = Results.open(folder / prediction.HALF)
        """The results themselves, by case and metric."""
        self._judged = judge_halves(self.results, None)
        self.answer: Answer = answer(self.results, None, None, self._judged, baseline)
        """The question, its answer in sentences, and a row for each case beside the baseline."""

    @property
    def cases(self) -> list[CaseView]:
        """The cases that were simulated, in the order of the study."""
        return self._loaded.study.cases

    def frame(self) -> pl.DataFrame:
        """A row for each case, a column for each setting that a case has and each figure.

        Columns are named as in `warifu predict --format csv`, with the unit last: `rtt_ns`,
        `p99_ns`, `delta_ns`, `link_b`. Nanoseconds are whole.
        """
        import polars as pl

        from warifu.answer.records import cases
        from warifu.report.table import frame_value, with_unit

        self._refuse_closed()
        rows = [
            {with_unit(key): frame_value(key, value) for key, value in row.items()}
            for row in cases(self.answer, [self.results], self._judged).records
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def observations(self) -> pl.DataFrame:
        """Every observation of every case: metric, value, unit, weight, stage (null for the whole
        metric) and `case_id`; a case's settings are in `frame`."""
        import polars as pl

        self._refuse_closed()
        parts = [
            self.results.rows(case_id).with_columns(pl.lit(case_id).alias("case_id"))
            for case_id in self.results.cases
        ]
        return pl.concat(parts).select("case_id", pl.exclude("case_id"))

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the report as one HTML page that needs nothing else; returns its path.

        Raises FileRefused where ``path`` is no file, and OSError.
        """
        from warifu.report.page import write_page

        self._refuse_closed()
        return write_page(self.folder, None, Path(path))

    def close(self) -> None:
        """Removes the temporary folder; what was read before stays. Harmless when done twice."""
        if self._cleanup is not None:
            self._cleanup()

    def __enter__(self) -> Prediction:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def __repr__(self) -> str:
        """The answer as the command line prints it."""
        from warifu.answer.text import as_text

        return as_text(self.answer, _COLUMNS, _SHOWN_ROWS).rstrip()

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        found = self.answer
        table = found.table(_SHOWN_ROWS)
        said = [*found.warnings, *found.sentences]
        sides = ["right" if column.number else "left" for column in table.columns]

        def row(cells: Sequence[str], tag: str) -> str:
            inside = "".join(
                f'<{tag} style="text-align:{side}">{escape(printable(cell))}</{tag}>'
                for cell, side in zip(cells, sides, strict=True)
            )
            return f"<tr>{inside}</tr>"

        items = "".join(f"<li>{escape(printable(one))}</li>" for one in said)
        notes = "".join(
            f"<p>{escape(printable(one))}</p>" for one in [*found.not_included, *table.notes]
        )
        head = row([column.head for column in table.columns], "th")
        body = "".join(row(cells, "td") for cells in table.cells)
        return (
            f"<p><b>{escape(printable(found.question))}</b></p><ul>{items}</ul>"
            f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{notes}"
        )

    def _refuse_closed(self) -> None:
        if self._cleanup is not None and not self._cleanup.alive:
            raise ValueError(
                "the prediction is closed and its temporary folder removed: ask again, or keep the "
                "results with out=FOLDER"
            )


def _path(name: str) -> str:
    return SHORT_NAMES.get(name, name)


def _refuse_twice(paths: Sequence[str]) -> None:
    """Raises StudyError for two values of one setting, as by its short name and its path: neither
    may win silently."""
    for path in paths:
        if paths.count(path) > 1:
            raise StudyError(f"warifu.ask: {clipped(path)} is given twice: give it once")


def _baseline(given: object) -> str | None:
    """A baseline as the command line takes it."""
    if given is None or isinstance(given, str):
        return given
    if type(given) is int:
        return str(given)
    raise StudyError(
        f"warifu.ask: baseline is {clipped(repr(given))}: expected a case's label, a part of it, "
        "or its number from 1"
    )


def _threads(given: object) -> int | None:
    if given is None or (type(given) is int and 1 <= given <= sys.maxsize):
        return given
    raise StudyError(
        f"warifu.ask: threads is {clipped(repr(given))}: expected a whole number from 1"
    )


def _text(name: str, value: object) -> str:
    """A value as the command line takes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    raise StudyError(
        f"warifu.ask: {_path(name)} is {printable(repr(value))}: expected text, a number, True or "
        "False; several values belong into vary"
    )


def _varied(vary: object) -> Iterable[tuple[str, object]]:
    if vary is None:
        return ()
    if not isinstance(vary, Mapping) or not all(isinstance(name, str) for name in vary):
        raise StudyError(
            f"warifu.ask: vary is {printable(repr(vary))}: expected a list of values for each "
            'setting, such as {"rtt": ["60 ms", "120 ms"]}'
        )
    return vary.items()


def _list(name: str, values: object) -> str:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise StudyError(
            f"warifu.ask: vary.{_path(name)} is {printable(repr(values))}: expected a list of "
            "values"
        )
    for value in values:
        _text(f"vary.{_path(name)}", value)
    return json.dumps(list(values), ensure_ascii=False)


def _bounds(require: Mapping[str, str] | Sequence[str] | None) -> list[tuple[str, str]]:
    if require is None:
        return []
    if isinstance(require, Mapping):
        keys = {metric: f"require.{metric}" for metric in require}
        return [(keys[metric], _text(keys[metric], limit)) for metric, limit in require.items()]
    bounds = []
    for text in [require] if isinstance(require, str) else require:
        found = bound(text)
        if found is None:
            raise StudyError(
                f"warifu.ask: require is {printable(repr(text))}: expected a bound such as "
                "'https.establishment.p99 < 3 s'"
            )
        bounds.append(found)
    return bounds


def _load(
    study: str | os.PathLike[str] | None,
    overrides: list[tuple[str, str]],
    profiles: Sequence[str | os.PathLike[str]] | None,
) -> Loaded:
    folders = None if profiles is None else [Path(one) for one in profiles]
    try:
        return load(study, overrides, folders, stand_in=True)
    except (StudyError, WarifuError) as error:
        # A mistake in a choice is not the command line's here.
        said = str(error)
        if not said.startswith(f"{COMMAND_LINE}: "):
            raise
        raise type(error)(f"warifu.ask{said.removeprefix(COMMAND_LINE)}") from None


def _predict(
    loaded: Loaded,
    out: str | os.PathLike[str] | None,
    baseline: str | None,
    threads: int | None,
    progress: Callable[[int, int, int], object] | None,
) -> Prediction:
    loaded, left_out = prediction.predictable(loaded)

    def run(folder: Path) -> None:
        prediction.run(
            loaded, folder / prediction.HALF, left_out, threads=threads, progress=progress
        )

    if out is not None:
        folder = Path(out)
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(lock.held(folder, "ask"))
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) else str(error)
                raise StudyError(
                    f"warifu.ask: out is {clipped(repr(str(folder)))}, where nothing can be "
                    f"written ({why}): choose another folder"
                ) from None
            prediction.refuse_another_study(loaded.study.name, folder)
            run(folder)
            return Prediction(loaded, folder, left_out.reasons, baseline, None)
    folder = Path(tempfile.mkdtemp(prefix="warifu-", dir=files.temporary_folder()))
    try:
        run(folder)
        found = Prediction(loaded, folder, left_out.reasons, baseline, None)
    except BaseException:
        # Ctrl-C too: nobody could ever find what is in there.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    found._cleanup = weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
    return found
