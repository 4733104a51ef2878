# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Keeps a judged study in small: `NAME.parquet` and `NAME.run.json` beside its tables.

python studies/accuracy/archive.py results/accuracy/loss-free studies/accuracy/loss-free
python studies/accuracy/archive.py --restore studies/accuracy/loss-free results/again
python studies/accuracy/archive.py --place results/accuracy/loss-free loss-free
"""

from __future__ import annotations

import itertools
import json
import sys
from datetime import datetime
from pathlib import Path

from warifu.printable import clipped
from warifu.results import ResultsError, archive, read_manifest
from warifu.results.manifest import not_usable

USAGE = (
    "usage: archive.py RESULTS_FOLDER NAME | archive.py --restore NAME FOLDER\n"
    "       archive.py --place RESULTS_FOLDER STUDY"
)


def place(results: Path, study: str) -> Path:
    """Where the tables of a run belong: the folder of the day on which it began, the next one
    where another run of ``study`` has that. Raises ResultsError where day or run cannot be told."""
    measured = read_manifest(results / "measured")
    day = Path(__file__).resolve().parent / _day(measured.get("started"), results / "measured")
    for number in itertools.count(1):
        folder = day if number == 1 else day.with_name(f"{day.name}-{number}")
        kept = folder / f"{study}.run.json"
        if not kept.exists() or _measured_run(kept) == measured["run_id"]:
            break
    return folder


def _day(started: object, measured: Path) -> str:
    """The day of an instant that the manifest of the folder ``measured`` has, as 2026-11-28."""
    try:
        return datetime.fromisoformat(str(started)).date().isoformat()
    except ValueError:
        said = f"started is {clipped(str(started))}"
        raise not_usable(measured, f"{said}: expected a date and a time") from None


def _measured_run(kept: Path) -> str:
    """The measured run that tables beside a `NAME.run.json` are of."""
    try:
        run = json.loads(kept.read_text())["run_ids"]["measured"]
    except (KeyError, OSError, RecursionError, TypeError, ValueError):
        run = None
    if not isinstance(run, str):
        raise ResultsError(
            f"{kept}: does not say which run was measured: put it back as it was, or move it and "
            "the tables beside it away"
        )
    return run


def main(arguments: list[str]) -> int:
    """Archives or restores, or says where; the exit code."""
    try:
        match arguments:
            case ["--restore", name, folder]:
                archive.restore(Path(f"{name}.parquet"), Path(folder))
            case ["--place", results, study]:
                print(place(Path(results), study))
            case [results, name]:
                run = archive.archive(Path(results), Path(f"{name}.parquet"))
                Path(f"{name}.run.json").write_text(json.dumps(run, indent=1) + "\n")
            case _:
                print(USAGE, file=sys.stderr)
                return 2
    except ResultsError as error:
        print(f"archive.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
