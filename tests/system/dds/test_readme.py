# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What README shows of DDS Security, as it stands there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from support import cyclone, needs
from support.paths import ROOT
from warifu import tools

pytestmark = [needs.root, needs.program("ip"), needs.program("ddsperf")]
SECTION = "## DDS Security: what it costs a program that you have"


def test_section_of_readme_profiles_a_secured_program(tmp_path: Path) -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition(SECTION)[2]
    found = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert found
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    with cyclone.network() as network:
        done = subprocess.run(
            [tools.find("ip"), "netns", "exec", network, "bash", "-eu", "-c", found[1]],
            cwd=tmp_path, text=True, capture_output=True, timeout=120, check=False,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    keys, answer = done.stdout.splitlines()[:2], done.stdout.splitlines()[2]
    assert [line.split(":")[0] for line in keys] == ["/talker", "/listener"]
    each = re.search(r"Cyclone DDS [\d.]+: (\d+) messages, each ([\d.]+) encryptions", answer)
    assert each is not None, answer
    # Data and metadata: the sample twice; some are ddsperf's own, of which a few go to nobody.
    assert int(each[1]) >= 100
    assert float(each[2]) > 1.5
    # ddsperf batches: each RTPS message has its MAC as a flush sends it.
    macs = re.search(r"^MACs +[\d.]+ +([\d.]+) ", done.stdout, re.MULTILINE)
    assert macs is not None, done.stdout
    assert float(macs[1]) > 0.5
    totals = re.findall(r"size 256 total (\d+) lost 0", (tmp_path / "listener.log").read_text())
    assert int(totals[-1]) >= 100
