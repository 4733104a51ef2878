# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Running the two halves, `warifu predict` and `warifu measure`, and showing one."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from warifu import prediction, provenance
from warifu.cli import answers, screen
from warifu.cli.formats import Format

if TYPE_CHECKING:
    from warifu.cli.answers import Answered
    from warifu.lab.cell import Settings
    from warifu.lab.measure import Progress, Summary
    from warifu.study import Loaded


#: Where results go by default.
RESULTS = Path("results")


def folder_of(loaded: Loaded, out: Path | None) -> Path:
    """The folder of a study's results; its halves are below."""
    return out if out is not None else RESULTS / loaded.study.name


def predict(
    loaded: Loaded,
    folder: Path,
    threads: int | None = None,
    keep: bool = False,
    tier: str = "events",
) -> Path:
    """Simulates every case into ``folder/predicted``; returns that folder.

    Results that are there already stay until the new ones are complete; what is cut short is then
    beside them (crates/core/results/src/folder.rs). Raises prediction.AnotherStudy, and leaves all
    as it is, where the folder holds one.
    """
    target, partial = folder / "predicted", folder / "predicted.partial"
    prediction.refuse_another_study(loaded.study.name, folder)
    older = (target / "manifest.json").is_file()
    another = prediction.replaces_another_question(loaded, folder)
    loaded, left_out = prediction.predictable(loaded)
    _warn_of_skipped("predicted", left_out.reasons)
    with screen.progress(f"predicting {loaded.study.name}") as report:
        try:
            done = prediction.run(
                loaded,
                target,
                left_out,
                threads=threads,
                keep_trials=keep,
                tier=tier,
                progress=lambda done, cases, trials: report(done, cases, f"{trials:,} trials"),
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_what_is_left(target, partial, older)) from None
        finally:
            _remove_if_empty(folder)
    if another:
        screen.say(f"{target}: was of another question, which --out OTHER_FOLDER would have kept")
    if tier != "events":
        screen.say(_of_exact_tier(done))
    return target


def _of_exact_tier(done: dict[str, Any]) -> str:
    """What the exact tier did of a prediction, and what its intervals hold."""
    if not done["exact"]:
        return (
            "exact tier: of no case, since nothing is lost, or so much that patterns of losses are "
            "too many, or more than losses and costs depends on chance: all are of trials"
        )
    return (
        f"exact tier: {done['exact']} of {done['cases']} cases; patterns of losses that it left "
        f"out have a probability of at most {done['residual']:.1g}; the intervals of times allow "
        "for that and for the noise of the costs that it draws"
    )


def _what_is_left(target: Path, partial: Path, older: bool) -> str:
    """What an interrupted prediction leaves; results in ``target`` may be an ``older`` run's."""
    places = [partial] if older else [target, partial]
    kept = [one for one in places if (one / "manifest.json").is_file()]
    words = "interrupted; no case was finished, so nothing of it is kept"
    if kept:
        words = f"interrupted; the cases that were finished are in {kept[0]}"
    return f"{words}; {target} is unchanged" if older else words


def show(half: Path, form: Format, baseline: str | None = None) -> Answered:
    """Answers from one half, and prints it."""
    predicted = half.name == "predicted"
    answered = answers.of_halves(
        half if predicted else None, None if predicted else half, None, baseline
    )
    answers.show(answered, form)
    return answered


def _remove_if_empty(folder: Path) -> None:
    """A study that could not be run leaves no folder behind."""
    for one in (folder, folder.parent if folder.parent == RESULTS else folder):
        with contextlib.suppress(OSError):
            one.rmdir()


def set_aside(folder: Path, run_id: str) -> Path:
    """Moves a measured half out of the way of a new one; returns where it is now."""
    return (folder / "measured").rename(folder / f"measured.before-{run_id}")


def measure(
    loaded: Loaded, folder: Path, trials: int | None = None, settings: Settings | None = None
) -> tuple[Path, Summary]:
    """Measures every case that this machine can into ``folder/measured``.

    Finished cells of an earlier run are kept, and Ctrl-C says which of this one's. Raises
    LabUnavailable where nothing can be measured, ResultsMixed where the folder holds what other
    tools or another machine gave.
    """
    target = folder / "measured"
    try:
        summary = _measure(loaded, target, trials, settings)
    except KeyboardInterrupt:
        # The store's layout (warifu.lab.store): a part that is whole, or a cell.
        kept = any(target.glob("parts/*/*.json")) or any(target.glob("observations/*.parquet"))
        left = "nothing was measured yet, so nothing is kept"
        if kept:
            left = f"what was measured is kept in {target}; the same command takes it up from there"
        raise KeyboardInterrupt(f"interrupted; {left}") from None
    finally:
        _remove_if_empty(folder)
    for warning in summary.warnings:
        screen.warn(warning)
    _warn_of_skipped("measured", summary.skipped | summary.given_up)
    if summary.rejections:
        screen.say(_rejected(summary, target / "manifest.json"))
    return target, summary


def _warn_of_skipped(done: str, skipped: dict[str, str]) -> None:
    """A line a reason; ``skipped`` has it by the case's label."""
    by_reason: dict[str, list[str]] = {}
    for label, reason in skipped.items():
        by_reason.setdefault(reason, []).append(label or "the only case")
    for reason, labels in by_reason.items():
        which = labels[0] if len(labels) == 1 else f"{len(labels)} cases, such as {labels[0]}"
        screen.warn(f"not {done}: {which}: {reason}")


def _rejected(summary: Summary, manifest: Path) -> str:
    """One line on all attempts that were rejected, whatever their number."""
    attempts = screen.counted(summary.rejections, "attempt")
    were = "was" if summary.rejections == 1 else "were"
    why = "; ".join(f"{count:,}: {cause}" for cause, count in summary.causes.items())
    return f"{attempts} at parts {were} rejected unseen ({why}); each is in {manifest}"


def _detail(progress: Progress) -> str:
    """What is measured, and before it why the time left may have risen."""
    words = []
    if progress.rejected:
        words.append(f"{screen.counted(progress.rejected, 'attempt')} rejected")
    if progress.overdue:
        words.append("parts take longer than planned")
    return "; ".join([*words, progress.label] if progress.label else words)


def _registered(folder: Path) -> dict[str, Any]:
    """What the measured half keeps of the prediction that is there before it is begun."""
    from warifu.results.registration import registered

    found = registered(folder / "predicted")
    return {} if found is None else {"registered": found}


def _measure(
    loaded: Loaded, target: Path, trials: int | None, settings: Settings | None
) -> Summary:
    from warifu import lab, study

    warned: set[str] = set()
    with screen.progress(f"measuring {loaded.study.name}") as report:

        def tell(progress: Progress) -> None:
            report(
                progress.trials_done,
                progress.trials,
                _detail(progress),
                seconds_left=progress.seconds_left,
            )
            if progress.message and progress.message not in warned:
                warned.add(progress.message)
                label = f"{progress.label}: " if progress.label else ""
                screen.say(f"{label}{progress.message}")

        return lab.measure(
            # The lab's protocol has plain attributes where the compiled class has properties.
            cast("Any", loaded.study),
            target,
            progress=tell,
            trials=trials,
            manifest=provenance.manifest(loaded, "measured") | _registered(target.parent),
            settings=settings,
            stand_ins={
                name: lab.StandIn(timing, agent)
                for name, (timing, agent) in study.stand_ins(loaded).items()
            },
        )
