# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the tests of the commands share: how they are run, and what stands in for the two halves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from support.synthetic import Cell, Half
from warifu import _core
from warifu import study as studies
from warifu.lab.errors import LabUnavailable, ResultsMixed

DEVICE = ("--device", "gr-peach", "--server", "gr-peach")


STUDY = """name = "three"
device = "gr-peach"
server = "gr-peach"
predict_trials = 50
[vary]
"link.rtt" = ["0 ms", "60 ms", "150 ms"]
[require]
"https.establishment.p99" = "< 5 s"
"""


Run = Callable[..., tuple[int, str, str]]


Progress = Callable[[int, int, int], None]


def one_line(err: str) -> str:
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    assert "Traceback" not in err
    return lines[0]


def study_name() -> str:
    """What a study without a file is called."""
    choices = [("device", "gr-peach"), ("server", "gr-peach")]
    return str(studies.load(None, choices).study.name)


def run_id(folder: Path) -> str:
    return str(json.loads((folder / "manifest.json").read_text())["run_id"])


def unavailable(*_: object, **__: object) -> None:
    raise LabUnavailable("network namespaces cannot be made: run as root")


class FakePredict:
    """Stands in for `_core.predict`: writes made-up results as it does, or is interrupted."""

    def __init__(self, seed: int = 1, interrupted: bool = False, bound_ns: float = 5e9) -> None:
        self.seed, self.interrupted, self.bound_ns = seed, interrupted, bound_ns

    def __call__(
        self, study: _core.Study, out_dir: str, manifest: str, *, progress: Progress, **_: object
    ) -> dict[str, object]:
        progress(0, 1, 0)
        bound = ["https.establishment", "p99", "<", self.bound_ns, "p99"]
        target, partial = Path(out_dir), Path(f"{out_dir}.partial")
        more = {"require": [bound], "study": {"name": study.name}}
        half = Half("predicted", [Cell()], 1_000, self.seed, manifest=more)
        place = half.write(target.parent / "work")
        shutil.rmtree(partial, ignore_errors=True)
        place.rename(partial)
        place.parent.rmdir()
        if self.interrupted and target.exists():
            raise KeyboardInterrupt
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
        if self.interrupted:
            raise KeyboardInterrupt
        return {}


class Measured:
    """Stands in for `halves.measure`: made-up results, after refusing to mix them with others."""

    measured = ("one",)

    def __init__(self, scale: float = 1.0, cells: Sequence[Cell] = (Cell(),)) -> None:
        self.scale, self.cells = scale, list(cells)
        self.works = True

    def __call__(self, loaded: studies.Loaded, folder: Path, *_: object) -> tuple[Path, Measured]:
        if (folder / "measured").exists():
            raise ResultsMixed(folder / "measured", "kernel 'a', now it is 'b'", "run-old")
        if not self.works:
            raise LabUnavailable("cannot create a network namespace: run as root")
        half = Half("measured", self.cells, 200, 2, self.scale)
        half.manifest = {"study": {"name": loaded.study.name}}
        return half.write(folder), self
