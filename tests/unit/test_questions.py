# SPDX-License-Identifier: Apache-2.0 OR MIT
"""docs/questions.md: every command runs, and gives the answer that stands below it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import scripts
from support.paths import ROOT

script = scripts.script("scripts/questions.py")
PAGE = (ROOT / "docs" / "questions.md").read_text()


def gist(text: str) -> list[str]:
    """What an answer says, whatever its figures are: they change with profiles and calibrations.
    A line of CSV is its header."""
    if text.startswith("case_id,"):
        return [text.splitlines()[0][:90]]
    plain = re.sub(r"\n  +", " ", text)
    lines = [line for line in plain.splitlines() if line.startswith("- ")]
    lines = [re.sub(r" \(below 1 %\)", "", line) for line in lines]
    # What is more than some values of an axis says more of them where they differ more.
    return [re.sub(r"[\d.,]+(?: k?m?[Bs])?(?: to [\d.,]+)?", "N", line) for line in lines]


@pytest.mark.parametrize("number", range(1, len(script.QUESTIONS) + 1))
def test_a_question_has_the_answer_of_its_page(number: int, tmp_path: Path) -> None:
    question = script.QUESTIONS[number - 1]
    (section,) = re.findall(rf"^## {number}\. (.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    heading, _, rest = section.partition("\n")
    assert heading == question.text
    commands, said = re.findall(r"```(?:sh|text)\n(.*?)\n```", rest, re.DOTALL)
    assert commands.splitlines() == [*question.before, question.command]
    printed, code = script.answer(question, tmp_path)
    assert ("The exit code is 1" in rest) == (code == 1)
    assert gist(printed) == gist(said), printed


def test_there_are_twelve() -> None:
    assert len(script.QUESTIONS) == 12
    assert PAGE.count("\n## ") == 12
