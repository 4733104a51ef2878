# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The module in a setuid program: the environment of whoever starts it counts for nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support import needs, programs

SOURCE = Path(__file__).with_name("setuid.c")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")


@pytest.fixture
def loader(tmp_path: Path) -> Path:
    """A setuid program of root's that loads a module."""
    program = tmp_path / "loader"
    subprocess.run(["cc", "-Wno-deprecated-non-prototype", "-w", "-o", program, SOURCE, "-ldl"],
                   check=True)  # fmt: skip
    program.chmod(0o4755)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder.stat().st_mode & 0o001 == 0:
            folder.chmod(folder.stat().st_mode | 0o011)
    return program


@needs.root
@needs.program("cc")
@needs.program("setpriv")
def test_environment_of_a_setuid_program(loader: Path, tmp_path: Path) -> None:
    config = tmp_path / "pkcs11.toml"
    config.write_text('[[card]]\naddress = "unix:/from/a/file.sock"\n')
    config.chmod(0o644)
    home = tmp_path / "home"
    (home / ".config/warifu").mkdir(parents=True)
    (home / ".config/warifu/pkcs11.toml").write_text(
        f'trace = "{tmp_path}/from-home.txt"\n[[card]]\naddress = "unix:/from/home.sock"\n'
    )
    hostile = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_RUNTIME_DIR": str(tmp_path),
        "WARIFU_PKCS11_CONFIG": str(config),
        "WARIFU_PKCS11_TRACE": str(tmp_path / "made-by-root.txt"),
        "WARIFU_CARD": "unix:/from/the/environment.sock",
    }
    before = set(tmp_path.rglob("*"))
    command = [*NOBODY, str(loader), str(programs.module())]
    done = subprocess.run(command, env=hostile, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(tmp_path.rglob("*")) == before, "a file made with root's rights"
    assert "/from/" not in done.stdout
    assert str(tmp_path) not in done.stdout
    # /etc/warifu/pkcs11.toml, or without one the default cards.
    if not Path("/etc/warifu/pkcs11.toml").exists():
        assert [line.strip() for line in done.stdout.splitlines()] == [
            "unix:/run/warifu/card.sock",
            "pcsc",
        ]
    # The same program without more rights than its user believes its environment.
    own = [str(loader), str(programs.module())]
    done = subprocess.run(own, env=hostile, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "unix:/from/the/environment.sock"
    assert (tmp_path / "made-by-root.txt").stat().st_mode & 0o777 == 0o600
