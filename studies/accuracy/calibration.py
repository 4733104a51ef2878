# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Refuses a calibration that says of itself that it is doubtful: its predictions are no evidence.

python studies/accuracy/calibration.py profiles/devices/this-host.calibration.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

USAGE = "usage: calibration.py THIS_HOST.calibration.json"


def doubts(record: Path) -> list[str]:
    """What a calibration says against itself. Raises OSError, and ValueError for another file."""
    no_record = f"{record} is no record of a calibration"
    try:
        found = json.loads(record.read_text())["details"]["warnings"]
    except (KeyError, TypeError) as error:
        raise ValueError(no_record) from error
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{no_record}: {error}") from error
    # Nothing else says that there are no doubts.
    if not isinstance(found, list) or not all(isinstance(doubt, str) for doubt in found):
        raise ValueError(f"{no_record}: details.warnings is no list of texts")
    return found


def main(arguments: list[str]) -> int:
    """1 if there are doubts, which it prints."""
    if len(arguments) != 1:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        found = doubts(Path(arguments[0]))
    except (OSError, ValueError) as error:
        print(f"calibration.py: {error}", file=sys.stderr)
        return 2
    if found:
        print(
            f"accuracy: of the calibration: {'; '.join(found)}: calibrate again, with nothing "
            "else running: warifu calibrate host --plan thorough --for STUDY",
            file=sys.stderr,
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
