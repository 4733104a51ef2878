# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What to change first in a secured DDS system: every neighbouring setting, predicted, with what it
saves and what is given up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any

from warifu.dds import leaner, way
from warifu.dds.governance import Governance

if TYPE_CHECKING:
    from warifu.dds.way import Bounds, Way

#: The AEADs of DDS Security 1.1 (section 9.5.2.1.1).
STANDARD = ("AES-256-GCM", "AES-128-GCM")

#: Settings as pairs of dotted path and value.
Settings = Sequence[tuple[str, str]]
#: From settings to `_core.dds_path`'s description, or NoFigures.
Predict = Callable[[Settings], Mapping[str, Any]]


class NoFigures(Exception):  # noqa: N818 - what there is, not what went wrong
    """A profile has no figures for a setting; its text names them."""


class Effort(IntEnum):
    """What a change takes, the least first."""

    GOVERNANCE = 0
    PLUGIN = 1
    EXPERIMENT = 2
    HARDWARE = 3


class Verdict(StrEnum):
    """Whether a change saves as much as was asked for."""

    SAVES = "saves enough"
    UNDECIDED = "undecided"
    LITTLE = "saves too little"


@dataclass(frozen=True)
class Asked:
    """The system as it is, and what counts as saving."""

    governance: Governance
    crypto: str
    aead: str
    #: The settings that no change touches: device, link, payload.
    fixed: tuple[tuple[str, str], ...]
    #: The share of the time that a change has to save.
    at_least: float = 0.05
    plain: bool = False

    def settings(
        self,
        governance: Governance | None = None,
        crypto: str | None = None,
        aead: str | None = None,
    ) -> Settings:
        """All of it as settings, with changes."""
        of = governance or self.governance
        stack = {
            "protocol": "dds", "crypto": crypto or self.crypto, "crypto_aead": aead or self.aead,
            "data_protection": of.data, "metadata_protection": of.metadata,
            "rtps_protection": of.rtps, "discovery_protection": of.discovery,
        }  # fmt: skip
        return [*((f"stack.{key}", str(value)) for key, value in stack.items()), *self.fixed]


@dataclass(frozen=True)
class Candidate:
    """A neighbouring setting, not yet predicted."""

    name: str
    effort: Effort
    gives_up: str
    needs: str
    way: Callable[[], Way]
    #: Among changes of the same effort, the least first.
    loss: int = 0
    #: The governance's lines that change.
    diff: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """A neighbouring setting with what it saves."""

    of: Candidate
    saves: Bounds
    before: float
    verdict: Verdict

    @property
    def name(self) -> str:
        """What is changed, in words."""
        return self.of.name

    @property
    def share(self) -> Bounds:
        """What it saves of the whole time."""
        low, usual, high = (saved / self.before for saved in self.saves)
        return low, usual, high


@dataclass(frozen=True)
class Advice:
    """The present, and what could be."""

    asked: Asked
    present: Way
    changes: list[Change] = field(default_factory=list)
    #: Neighbouring settings that a profile has no figures for, and what it lacks.
    unknown: list[tuple[str, str]] = field(default_factory=list)

    @property
    def total(self) -> Bounds:
        """The present time at its low, usual and high bound, ns."""
        low, usual, high = (self.present.total(way.at(index)) for index in range(3))
        return low, usual, high

    @property
    def first(self) -> Change | None:
        """The cheapest change that saves enough: the least effort, and of a governance's lines the
        one that gives up least."""
        enough = [change for change in self.changes if change.verdict is Verdict.SAVES]
        return min(enough, key=_order, default=None)

    @property
    def undecided(self) -> list[Change]:
        """What may save enough or not, by order of effort."""
        open_ = [change for change in self.changes if change.verdict is Verdict.UNDECIDED]
        return sorted(open_, key=_order)

    @property
    def sorted_changes(self) -> list[Change]:
        """The first one first, then those that save enough, are undecided, save too little."""
        verdicts = list(Verdict)
        return sorted(
            self.changes, key=lambda change: (verdicts.index(change.verdict), _order(change))
        )


def _order(change: Change) -> tuple[int, int, float]:
    return int(change.of.effort), change.of.loss, -change.saves[1]


def advise(
    asked: Asked,
    predict: Predict,
    aeads: Sequence[str],
    accelerators: Sequence[Mapping[str, Any]],
    only: str | None = None,
) -> Advice:
    """Predicts the present and every neighbouring setting, or ``only`` that of a name.

    ``aeads`` are those that the device has figures for; ``accelerators`` are `_core.accelerator`'s.
    Raises NoFigures where the present lacks a cost.
    """
    path = predict(asked.settings())
    advice = Advice(asked, way.read(path))
    before = advice.total[1]
    for candidate in candidates(asked, path, predict, aeads, accelerators):
        if only is None or candidate.name == only:
            try:
                other = candidate.way()
            except NoFigures as error:
                advice.unknown.append((candidate.name, str(error)))
                continue
            saves = way.saved(advice.present, other)
            share = (saves[0] / before, saves[1] / before, saves[2] / before)
            verdict = judge(share, asked.at_least)
            advice.changes.append(Change(candidate, saves, before, verdict))
    return advice


def judge(share: Bounds, at_least: float) -> Verdict:
    """By the whole interval: what may go either way is undecided."""
    low, _, high = share
    if low >= at_least and low > 0:
        return Verdict.SAVES
    return Verdict.LITTLE if high < at_least or high <= 0 else Verdict.UNDECIDED


def candidates(
    asked: Asked,
    path: Mapping[str, Any],
    predict: Predict,
    aeads: Sequence[str],
    accelerators: Sequence[Mapping[str, Any]],
) -> Iterator[Candidate]:
    """Every neighbouring setting. ``path`` is the present's."""

    def predicted(settings: Settings) -> Callable[[], Way]:
        return lambda: way.read(predict(settings))

    if asked.crypto != "none":
        for step in leaner.steps(asked.governance, plain=asked.plain):
            yield Candidate(
                step.name, Effort.GOVERNANCE, step.gives_up,
                "governance signed anew, every participant started anew",
                predicted(asked.settings(governance=step.governance)), step.loss,
                tuple(leaner.diff(asked.governance, step.governance)),
            )  # fmt: skip
    if asked.crypto == "builtin":
        yield Candidate(
            "Warifu's plugin, which keeps keyed contexts", Effort.PLUGIN,
            "nothing on the wire, which stays the standard's",
            "libwarifu_dds_crypto.so at both ends, which Cyclone DDS alone loads",
            predicted(asked.settings(crypto="warifu")),
        )  # fmt: skip
    for aead in () if asked.crypto == "none" else aeads:
        if aead != asked.aead:
            yield _with_aead(aead, predicted(asked.settings(crypto="warifu", aead=aead)))
    for accelerator in () if asked.crypto == "none" else accelerators:
        offload = way.Offload.of(accelerator, asked.aead)
        if offload is not None:
            yield Candidate(
                f"accelerator {offload.name}", Effort.HARDWARE, "nothing of the protection",
                f"{accelerator['needs']}, at both ends", _offloaded(path, offload),
            )  # fmt: skip


def _offloaded(path: Mapping[str, Any], offload: way.Offload) -> Callable[[], Way]:
    return lambda: way.read(path, offload)


def _with_aead(aead: str, predicted: Callable[[], Way]) -> Candidate:
    needs = "libwarifu_dds_crypto.so in every participant, which Cyclone DDS alone loads"
    if aead not in STANDARD:
        gives_up = "the standard: DDS Security knows AES alone, and nobody else reads this"
        name = f"{aead} by Warifu's plugin: an EXPERIMENT"
        return Candidate(name, Effort.EXPERIMENT, gives_up, needs, predicted)
    gives_up = "a key of 256 bit for one of 128" if aead == "AES-128-GCM" else "nothing"
    return Candidate(f"{aead} by Warifu's plugin", Effort.PLUGIN, gives_up, needs, predicted)
