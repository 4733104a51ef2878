# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Times the sweep of bench/sweep.toml by part: reading its text, simulating it into Parquet.

What `warifu predict` answers from the results comes after that, and is not in it. Prints one JSON
object; times in s, sizes in MB.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import tempfile
import time
from pathlib import Path

from warifu import prediction, study

ROOT = Path(__file__).resolve().parent.parent


def run(device: str, trials: int, step: int) -> dict[str, float]:
    """Simulates every ``step``-th case with ``trials`` trials, ``device`` at both ends."""
    begin = time.perf_counter()
    chosen = [("device", device), ("server", device), ("predict_trials", str(trials))]
    profiles = [ROOT / "bench" / "profiles", ROOT / "profiles"]
    loaded = study.load(ROOT / "bench" / "sweep.toml", chosen, profiles)
    loaded, left_out = prediction.predictable(loaded)
    if step > 1:
        part = loaded.study.only(range(0, len(loaded.study.cases), step))
        loaded = dataclasses.replace(loaded, study=part)
    read = time.perf_counter()
    (ROOT / "results").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=ROOT / "results") as folder:
        target = Path(folder) / "predicted"
        done = prediction.run(loaded, target, left_out)
        end = time.perf_counter()
        size = sum(part.stat().st_size for part in target.glob("**/*.parquet"))
    return {
        "cases": done["cases"],
        "trials": done["trials"],
        "read_s": read - begin,
        "simulate_s": end - read,
        "parquet_mb": size / 1e6,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="xeon-2-5-ghz-vm")
    parser.add_argument("--trials", type=int, default=1_000)
    parser.add_argument(
        "--step",
        type=int,
        default=1,
        help="every so many-th case alone; one without a factor 2 or 5 takes each choice",
    )
    given = parser.parse_args()
    print(json.dumps(run(given.device, given.trials, given.step)))


if __name__ == "__main__":
    main()
