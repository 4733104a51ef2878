# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Judges recipes: messages predicted from primitives, against messages that were timed whole.

    .venv/bin/python bench/recipes/judge.py host       # this machine, OpenSSL (release build)
    .venv/bin/python bench/recipes/judge.py m3         # Mbed TLS on the simulated Cortex-M3
    .venv/bin/python bench/recipes/judge.py gr-peach   # Table 2 of Komatsu, Matsubara and Takada

Each prints a table and exits with 1 if a gate was missed: every message above 1 % of the total
within 10 %, the total within 5 %, and no such message whose remainder, priced by the instruction,
is above 20 % of it. Predictions come from the recipes by the code that `warifu predict` uses. What
an instruction takes is fitted on options, or a device, that are not judged.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from warifu import _core, study
from warifu.study import ProfileText

MESSAGE_GATE, TOTAL_GATE, REMAINDER_GATE = 0.10, 0.05, 0.20
COUNTS_FROM = 0.01
"""Messages with a smaller share of the total are not judged by themselves."""
SYSTEM_CALLS = ("accept", "connect", "http_respond", "interface", "wake", "write")
"""They are not judged here."""
NAME = "judged"
"""The device profile that predictions are made with."""
SCALE = 1e3
"""ns that a figure of 1 stands for, so that rounding to whole ns does not show."""


@dataclass(frozen=True)
class Figure:
    """A primitive's time, ns a call and a byte."""

    call: float
    byte: float = 0.0


Figures = Mapping[str, Figure]


@dataclass(frozen=True)
class Option:
    """A handshake that was timed: its choices, and what each message took, ns."""

    label: str
    choices: tuple[tuple[str, str], ...]
    timed: Mapping[str, float]


@dataclass(frozen=True)
class Line:
    """A message of an option: timed and predicted, ns."""

    option: str
    message: str
    timed: float
    predicted: float
    remainder: float
    judged: bool

    @property
    def error(self) -> float:
        """Of the prediction, relative to what was timed."""
        return self.predicted / self.timed - 1 if self.timed else 0.0

    @property
    def share(self) -> float:
        """The remainder's of the prediction."""
        return self.remainder / self.predicted if self.predicted else 0.0

    @property
    def misses(self) -> list[str]:
        """The gates that it misses."""
        if not self.judged:
            return []
        total = self.message == "total"
        found = []
        if abs(self.error) > (TOTAL_GATE if total else MESSAGE_GATE):
            found.append("error")
        if not total and self.share > REMAINDER_GATE:
            found.append("remainder")
        return found


@dataclass
class Judgement:
    """The lines of all options, and what is said of them."""

    title: str
    notes: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    causes: Callable[[Line], str] = lambda line: ""

    def print(self, unit: str, per_unit: float, decimals: int) -> None:
        """The table as markdown."""
        print(f"\n{self.title}\n")
        for note in self.notes:
            print(f"- {note}")
        print(f"\n| option | message | timed, {unit} | predicted, {unit} | error | remainder | |")
        print("|---|---|---:|---:|---:|---:|---|")
        for line in self.lines:
            verdict = "" if not line.judged else "met"
            if line.misses:
                cause = self.causes(line)
                verdict = f"**missed** ({', '.join(line.misses)})" + (f": {cause}" if cause else "")
            print(f"| {line.option} | {line.message} | {line.timed / per_unit:.{decimals}f} | "
                  f"{line.predicted / per_unit:.{decimals}f} | {line.error:+.1%} | "
                  f"{line.share:.1%} | {verdict} |")  # fmt: skip
        judged = [line for line in self.lines if line.judged]
        missed = [line for line in judged if line.misses]
        print(
            f"\n{len(judged) - len(missed)} of {len(judged)} judged figures are within their gates."
        )


def figures_toml(figures: Figures, library: str) -> str:
    """A device profile of these primitives."""
    text = [f'name = "{NAME}"', 'description = "judged"', f'library = "{library}"',
            'source = "bench/recipes/judge.py"', 'kind = "measured"']  # fmt: skip
    for name, figure in figures.items():
        warm = f"{figure.call:.6f}" if name == "instruction" else f"{figure.call:.0f}"
        text += ["[[primitive]]", f'name = "{name}"', f'warm = "{warm} ns"']
        if figure.byte:
            text.append(f'per_byte = "{figure.byte:.6f} ns"')
    for role in ("client", "server"):
        for call in SYSTEM_CALLS:
            text += ["[[operation]]", f'name = "{role}.system.{call}"', 'warm = "0 ns"']
    return "\n".join(text) + "\n"


def profiles() -> list[ProfileText]:
    """All that is shipped."""
    return list(study.profile_texts(study.profile_folders()))


def lowered(
    figures: Figures, library: str, choices: Sequence[tuple[str, str]], roles: Sequence[str]
) -> dict[str, float]:
    """What each message takes by the library's recipe, ns: the same code as `warifu predict`'s."""
    scaled = {
        name: Figure(figure.call * SCALE, figure.byte * SCALE) for name, figure in figures.items()
    }
    mine = ("device", NAME, figures_toml(scaled, library), f"{NAME}.toml")
    question = [("device", NAME), ("server", NAME), ("link", "loopback"), *choices]
    asked = _core.Study.from_choices(question, [*profiles(), mine])
    found: dict[str, float] = defaultdict(float)
    for step in _core.step_costs(asked, 0):
        if step["operation"].split(".")[0] in roles and ".system." not in step["operation"]:
            found[step["operation"]] += (step["own_ns"] + step["cipher_ns"]) / SCALE
    return dict(found)


def instructions(
    figures: Figures, library: str, option: Option, roles: Sequence[str]
) -> dict[str, float]:
    """How many instructions outside of the primitives each message has."""
    none = {name: Figure(0.0) for name in figures if name != "instruction"}
    return lowered(none | {"instruction": Figure(1.0)}, library, option.choices, roles)


def implied(
    figures: Figures, library: str, options: Sequence[Option], roles: Sequence[str],
    messages: Callable[[str], bool] = lambda _: True,
) -> float:  # fmt: skip
    """Mean time of an instruction outside of the primitives, from these options' messages, ns;
    below zero where the primitives alone take longer than the messages."""
    time, count = 0.0, 0.0
    for option in options:
        known = lowered({**figures, "instruction": Figure(0.0)}, library, option.choices, roles)
        counts = instructions(figures, library, option, roles)
        for message, timed in option.timed.items():
            if messages(message):
                time += timed - known.get(message, 0.0)
                count += counts.get(message, 0.0)
    return time / count if count else 0.0


def price(
    figures: Figures, library: str, options: Sequence[Option], roles: Sequence[str],
    messages: Callable[[str], bool] = lambda _: True,
) -> float:  # fmt: skip
    """What `implied` gives, to predict with. Ends the program where that is below zero: then
    nothing is left for instructions, and the gate of the remainder would pass whatever it is."""
    found = implied(figures, library, options, roles, messages)
    if found < 0.0:
        raise SystemExit(
            f"judge: the primitives of {library} take longer than the messages that an "
            f"instruction's time is fitted on ({found:.2f} ns for each): they were not timed as "
            "the library calls them"
        )
    return found


def judge(
    judgement: Judgement, figures: Figures, library: str, options: Sequence[Option],
    roles: Sequence[str],
) -> None:  # fmt: skip
    """Adds the lines of the options."""
    rate = figures["instruction"].call
    for option in options:
        predicted = lowered(figures, library, option.choices, roles)
        counts = instructions(figures, library, option, roles)
        total = sum(option.timed.values())
        lines = [
            Line(option.label, message, timed, predicted.get(message, 0.0),
                 counts.get(message, 0.0) * rate, timed > COUNTS_FROM * total)
            for message, timed in option.timed.items()
        ]  # fmt: skip
        judgement.lines += lines
        judgement.lines.append(
            Line(option.label, "total", total, sum(line.predicted for line in lines),
                 sum(line.remainder for line in lines), True)
        )  # fmt: skip


def main() -> int:
    """Judges on one machine; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=("host", "m3", "gr-peach"))
    which = parser.parse_args().which
    if which == "m3":
        import judge_m3 as one
    elif which == "host":
        import judge_host as one  # type: ignore[no-redef]
    else:
        import judge_gr_peach as one  # type: ignore[no-redef]
    judgement = one.judgement()
    judgement.print(*one.UNIT)
    return 1 if any(line.misses for line in judgement.lines) else 0


if __name__ == "__main__":
    sys.modules["judge"] = sys.modules["__main__"]
    sys.exit(main())
