# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu init`: studies to begin with."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import Run, one_line
from support.paths import ROOT
from warifu import _core
from warifu import study as studies
from warifu.calibrate import parts
from warifu.cli import templates
from warifu.cli.errors import OK, USAGE


def test_init_overwrites_only_when_told(warifu: Run, tmp_path: Path) -> None:
    code, _, err = warifu("init", "meter.toml")
    assert code == OK
    assert "warifu run meter.toml" in err
    written = (tmp_path / "meter.toml").read_text()
    (tmp_path / "meter.toml").write_text("mine")
    code, _, err = warifu("init", "meter.toml")
    assert code == USAGE
    assert "--force" in one_line(err)
    assert (tmp_path / "meter.toml").read_text() == "mine"
    assert warifu("init", "meter.toml", "--force")[0] == OK
    assert (tmp_path / "meter.toml").read_text() == written


def test_what_the_readme_says_of_init_makes_a_study(tmp_path: Path) -> None:
    """By a shell, as a reader would: a redirection must not leave an empty study behind."""
    words = " ".join((ROOT / "README.md").read_text().split())
    found = re.findall(r"`warifu (init --template [^`]*)`", words)
    assert len(found) == 1
    for arguments in (*found, "init --template smart-meter - > printed.toml"):
        program = f"{shlex.quote(sys.executable)} -m warifu.cli {arguments}"
        subprocess.run(program, shell=True, check=True, capture_output=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["meter.toml", "printed.toml"]
    assert 'name = "smart-meter"' in (tmp_path / "meter.toml").read_text()
    assert (tmp_path / "printed.toml").read_text() == (tmp_path / "meter.toml").read_text()


def test_templates_are_listed_with_a_sentence_each(warifu: Run) -> None:
    code, out, _ = warifu("init", "--list", "--format", "json")
    assert code == OK
    rows = json.loads(out)["tables"][0]["rows"]
    assert "smart-meter" in {row["name"] for row in rows}
    assert all(row["about"].endswith(".") and "SPDX" not in row["about"] for row in rows)


@pytest.mark.parametrize("name", templates.names())
def test_every_template_is_a_good_study(name: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    templates.write(name, path, force=False)
    texts = list(studies.profile_texts(studies.profile_folders()))
    texts.append(
        ("device", "this-host", parts.stand_in([]).profile("r", "stands in").toml(), "stand-in")
    )
    assert _core.mistakes(path.read_text(), str(path), texts) == []
