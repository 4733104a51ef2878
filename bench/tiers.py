# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Times `warifu predict` of bench/tiers.toml by the exact tier and by trials of the event tier, in
turn, from the compiled study to Parquet, on one core.

Prints one JSON object: medians in s.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from warifu import prediction, study

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    taken: dict[str, list[float]] = {"exact": [], "events": []}
    (ROOT / "results").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=ROOT / "results") as name:
        folder, file = Path(name), ROOT / "bench" / "tiers.toml"
        loaded, left_out = prediction.predictable(study.load(file, [], [ROOT / "profiles"]))
        for run in range(runs):
            for tier, seconds in taken.items():
                begin = time.perf_counter()
                prediction.run(loaded, folder / f"{tier}-{run}", left_out, threads=1, tier=tier)
                seconds.append(time.perf_counter() - begin)
    result = {f"{tier}_s": statistics.median(seconds) for tier, seconds in taken.items()}
    print(json.dumps(result | {"runs": runs}))


if __name__ == "__main__":
    main()
