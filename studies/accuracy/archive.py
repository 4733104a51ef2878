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
from pathlib import Path

from warifu.results import ResultsError, archive, read_manifest

USAGE = (
    "usage: archive.py RESULTS_FOLDER NAME | archive.py --restore NAME FOLDER\n"
    "       archive.py --place RESULTS_FOLDER STUDY"
)


def place(results: Path, study: str) -> Path:
    """Where the tables of a run belong: the folder of the day on which it began, the next one
    where another run of ``study`` has that."""
    measured = read_manifest(results / "measured")
    day = Path(__file__).resolve().parent / str(measured["started"])[:10]
    for number in itertools.count(1):
        folder = day if number == 1 else day.with_name(f"{day.name}-{number}")
        kept = folder / f"{study}.run.json"
        if not kept.exists():
            break
        if json.loads(kept.read_text())["run_ids"]["measured"] == measured["run_id"]:
            break
    return folder


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
