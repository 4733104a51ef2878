# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Keeps a judged study in small: `NAME.parquet` and `NAME.run.json` beside its tables.

python studies/accuracy/archive.py results/accuracy/loss-free studies/accuracy/loss-free
python studies/accuracy/archive.py --restore studies/accuracy/loss-free results/again
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from warifu.results import ResultsError, archive

USAGE = "usage: archive.py RESULTS_FOLDER NAME | archive.py --restore NAME FOLDER"


def main(arguments: list[str]) -> int:
    """Archives or restores; the exit code."""
    try:
        match arguments:
            case ["--restore", name, folder]:
                archive.restore(Path(f"{name}.parquet"), Path(folder))
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
