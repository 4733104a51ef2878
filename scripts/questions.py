#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes docs/questions.md: what people ask, each as one command with its answer."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "questions.md"

_HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 OR MIT -->
<!-- Written by scripts/questions.py (make golden); a test runs every command. -->
# Twelve questions

Each is one command, and below it is its answer as printed. `--vary` makes a case of each value,
`--require` judges every case, and the exit code is 1 where a bound is missed or not sure to be
met. Without `--server` the other end is this machine; where it was never calibrated, the shipped
machine stands in for it, as here, and the answer says so. Times are from the first call to the
first byte of the response.

"""


@dataclass(frozen=True)
class Question:
    """A question with the command that answers it, and the commands that must come before."""

    text: str
    command: str
    before: tuple[str, ...] = ()
    #: Lines of output that are kept; None for all.
    lines: int | None = None
    note: str = ""


_BOARD = (
    "warifu init device my-board --core cortex-m4 --clock 64MHz --ecdsa-sign 45ms "
    "--ecdsa-verify 88ms --ecdh 40ms"
)

QUESTIONS = (
    Question(
        "Mutual or server-only authentication over NB-IoT?",
        "warifu predict --device nrf52840 --link nb-iot --vary stack.authentication=mutual,server",
    ),
    Question(
        "TLS 1.2 or 1.3 at a round-trip time of 800 ms?",
        "warifu predict --device nrf52840 --link nb-iot --rtt '800 ms' --vary stack.tls=1.2,1.3",
    ),
    Question(
        "ECDSA or RSA certificates, on a GR-PEACH and on a Cortex-M4?",
        "warifu predict --link ethernet --authentication server --vary device=gr-peach,nrf52840 "
        "--vary stack.certificate=ecdsa_secp256r1,rsa-2048",
        note="Of GR-PEACH's client RSA certificates alone are published (TLS 1.3): a case without "
        "figures is left out and named, never answered by another algorithm's.",
    ),
    Question(
        "What does a SIM cost whose signature takes one second?",
        "warifu predict --device nrf52840 --link lte-m --vary key_store=software,sim-1s",
    ),
    Question(
        "Which of eight options meet three seconds?",
        "warifu predict --device nrf52840 --link lte-m --rtt '800 ms' --vary stack.tls=1.2,1.3 "
        "--vary stack.session=full,resumed --vary stack.authentication=server,mutual "
        "--require 'https.establishment.p50 < 3 s'",
    ),
    Question(
        "How many bytes does a connection take?",
        "warifu predict --device nrf52840 --link nb-iot --require 'bytes.link.mean < 8 KiB'",
    ),
    Question(
        "Two links beside each other?",
        "warifu predict --device nrf52840 --vary link=lte-m,nb-iot",
    ),
    Question(
        "An upload of 100 B instead of a GET?",
        "warifu predict --device nrf52840 --link nb-iot --vary 'pattern.request_body=0 B,100 B'",
    ),
    Question(
        "A board of your own, from a data sheet?",
        "warifu predict --device my-board --link lte-m --authentication server "
        "--require 'https.establishment.p99 < 3 s'",
        before=(_BOARD,),
        note="From a benchmark's output: [how to describe your own device](how-to/own-device.md).",
    ),
    Question(
        "Payloads from 100 B to 100 kB, down and up?",
        "warifu predict --device nrf52840 --link lte-m "
        "--vary 'pattern.response_body=100 B,10 kB,100 kB' "
        "--vary 'pattern.request_body=100 B,10 kB,100 kB'",
    ),
    Question(
        "The figures in a spreadsheet, or in LaTeX?",
        "warifu predict --device nrf52840 --link lte-m --vary stack.session=full,resumed "
        "--format csv",
        lines=2,
        note="One row a case, a column for each setting, and units in the columns' names. "
        "`--format latex` gives a table for a paper, `md` and `json` the other two; JSON has one "
        "shape for all verbs ([schema](reference/output.schema.json)).",
    ),
    Question(
        "A PSK or certificates on a Cortex-M0+?",
        "warifu predict --device stm32g071 --link nb-iot "
        "--vary stack.authentication=mutual,server,psk",
    ),
)


#: `warifu` on a machine that was never calibrated: the first argument is the folder of profiles.
_WARIFU = """
import sys
from pathlib import Path
from warifu import study
from warifu.cli import main
shipped = Path(sys.argv.pop(1))
study.shipped_folders = lambda: [shipped]
sys.exit(main())
"""


def _profiles_alone(place: Path) -> Path:
    """A folder in ``place`` with the shipped profiles: a clone keeps this machine's own beside
    them."""
    shipped, alone = ROOT / "profiles", place / ".shipped"
    for file in shipped.rglob("*.toml"):
        target = alone / file.relative_to(shipped)
        if file.stem != "this-host":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(file)
    return alone.resolve()


def answer(question: Question, folder: Path) -> tuple[str, int]:
    """What the command prints in ``folder``, and its exit code."""
    environment = os.environ | {"TZ": "UTC", "NO_COLOR": "1"}
    program = [sys.executable, "-c", _WARIFU, str(_profiles_alone(folder))]
    for command in (*question.before, question.command):
        done = subprocess.run(
            program + shlex.split(command)[1:],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode not in (0, 1):
            raise SystemExit(f"{command}\n{done.stderr}")
    return done.stdout, done.returncode


def section(number: int, question: Question, said: str, code: int) -> str:
    """A question of the page."""
    lines = said.rstrip("\n").splitlines()
    if question.lines is not None:
        lines = [line if len(line) <= 100 else f"{line[:97]}..." for line in lines]
        lines = lines[: question.lines]
    shown = "\n".join(lines)
    commands = "\n".join((*question.before, question.command))
    note = f"\n{question.note}\n" if question.note else ""
    missed = "\nThe exit code is 1: a bound is missed.\n" if code else ""
    return (
        f"## {number}. {question.text}\n\n```sh\n{commands}\n```\n\n```text\n{shown}\n```\n"
        f"{missed}{note}\n"
    )


def main() -> None:
    """Runs every command in an empty folder and writes the page."""
    parts = [_HEAD]
    for number, question in enumerate(QUESTIONS, start=1):
        with tempfile.TemporaryDirectory(dir=ROOT / "target") as folder:
            parts.append(section(number, question, *answer(question, Path(folder))))
    PAGE.write_text("".join(parts).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
