# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Running the two halves: `warifu predict` and `warifu measure`."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from warifu.cli import provenance, screen

if TYPE_CHECKING:
    from warifu.lab.measure import Progress, Summary
    from warifu.study import Loaded

#: Where results go by default.
RESULTS = Path("results")


def folder_of(loaded: Loaded, out: Path | None) -> Path:
    """The folder of a study's results; its halves are below."""
    return out if out is not None else RESULTS / loaded.study.name


def predict(loaded: Loaded, folder: Path, threads: int | None = None, keep: bool = False) -> Path:
    """Simulates every case into ``folder/predicted``; returns that folder.

    Results that are there already stay until the new ones are complete.
    """
    from warifu import _core

    target = folder / "predicted"
    older = (target / "manifest.json").is_file()
    place = target.with_name("predicted.next") if older else target
    study = loaded.study
    with screen.progress(f"predicting {study.name}") as report:
        try:
            _core.predict(
                study,
                str(place),
                json.dumps(provenance.manifest(loaded, "predicted")),
                threads=threads,
                keep="trials" if keep else "distribution",
                progress=lambda done, cases, trials: report(done, cases, f"{trials:,} trials"),
                now=provenance.now,
            )
        except KeyboardInterrupt:
            if older and place.exists():
                screen.say(f"{target} is as it was; what was finished is in {place}")
            raise
        finally:
            _remove_if_empty(folder)
    if older:
        _swap(place, target)
    return target


def _remove_if_empty(folder: Path) -> None:
    """A study that could not be run leaves no folder behind."""
    for one in (folder, folder.parent if folder.parent == RESULTS else folder):
        with contextlib.suppress(OSError):
            one.rmdir()


def _swap(new: Path, target: Path) -> None:
    """Puts ``new`` in the place of ``target``."""
    old = target.with_name(f"{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    target.rename(old)
    new.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def measure(
    loaded: Loaded, folder: Path, trials: int | None = None, rate: float | None = None
) -> tuple[Path, Summary]:
    """Measures every case that this machine can into ``folder/measured``.

    Finished cells of an earlier run are kept. Raises LabUnavailable where nothing can be measured.
    """
    from warifu import lab

    target = folder / "measured"
    warned: set[str] = set()
    with screen.progress(f"measuring {loaded.study.name}") as report:

        def tell(progress: Progress) -> None:
            report(progress.trials_done, progress.trials, progress.label)
            if progress.message and progress.message not in warned:
                warned.add(progress.message)
                screen.say(f"{progress.label}: {progress.message}")

        summary = lab.measure(
            # The lab's protocol has plain attributes where the compiled class has properties.
            cast("Any", loaded.study),
            target,
            progress=tell,
            trials=trials,
            manifest=provenance.manifest(loaded, "measured"),
            settings=None if rate is None else lab.Settings(rate_per_second=rate),
        )
    for warning in summary.warnings:
        screen.warn(warning)
    for label, reason in (summary.skipped | summary.given_up).items():
        screen.warn(f"not measured: {label}: {reason}")
    if summary.rejections:
        screen.say(
            f"{summary.rejections} parts were rejected unseen because the link was late, and "
            f"measured again; the reasons are in {target / 'manifest.json'}"
        )
    return target, summary
