# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Times `warifu predict` of one case by the exact tier and by 50,000 trials of the event tier, in
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
TRIALS = 50_000

STUDY = f"""
name = "tiers"
seed = 1
trials = 1
predict_trials = {TRIALS}
device = "xeon-2-5-ghz-vm"
server = "xeon-2-5-ghz-vm"
key_store = "software"

[link]
profile = "loopback"
rtt = "60 ms"
loss = "2 %"

[stack]
protocol = "https"
tls = "1.3"
session = "full"
authentication = "mutual"
"""


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    taken: dict[str, list[float]] = {"exact": [], "events": []}
    (ROOT / "results").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=ROOT / "results") as name:
        folder = Path(name)
        file = folder / "tiers.toml"
        file.write_text(STUDY)
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
