# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The module in a setuid program: the environment of whoever starts it counts for nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from support import needs, programs
from support.paths import ROOT
from support.setuid import AS_USER, path_of, setuid

SOURCE = Path(__file__).with_name("setuid.c")


@pytest.fixture
def loader(tmp_path: Path) -> Iterator[Path]:
    """A setuid program of root's that loads the module."""
    program = tmp_path / "loader"
    _open(tmp_path)
    module = path_of("MODULE", programs.module())
    subprocess.run(["cc", "-Wno-deprecated-non-prototype", "-w", "-o", program, module, SOURCE,
                    "-ldl"], check=True)  # fmt: skip
    with setuid(program):
        yield program


def _open(place: Path) -> None:
    """Lets others through root's folders, which pytest keeps closed."""
    for folder in (place, *place.parents):
        if folder.owner() == "root" and folder.stat().st_mode & 0o001 == 0:
            folder.chmod(folder.stat().st_mode | 0o011)


@needs.root
@needs.program("setpriv")
def test_setuid_program_is_its_tests_alone(tmp_path: Path) -> None:
    """Nobody else may run it, or find it later."""
    _open(tmp_path)
    program = tmp_path / "id"
    shutil.copy("/usr/bin/id", program)
    # As pytest's own folders are not: everybody can see it.
    tmp_path.chmod(0o755)
    others = [
        ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--"]
        for user, group in ((65534, 65534), (1, 1))
    ]

    def runs(prefix: Iterable[str]) -> bool:
        # By env(1): setpriv itself has kept root's capabilities until it executes something.
        command = [*prefix, "env", program, "-u"]
        return subprocess.run(command, capture_output=True, check=False).stdout == b"0\n"

    with pytest.raises(ZeroDivisionError), setuid(program):
        assert runs(AS_USER)
        assert not any(map(runs, others))
        raise ZeroDivisionError
    assert not program.exists()


def test_nothing_else_makes_a_setuid_program() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.name not in {"setuid.py", Path(__file__).name}
        for match in re.finditer(r"0o[246][0-7]{3}\b|S_IS[UG]ID|\b[ug]\+s\b", path.read_text())
    ]
    assert found == []


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
    command = [*AS_USER, str(loader)]
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
    done = subprocess.run([loader], env=hostile, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "unix:/from/the/environment.sock"
    assert (tmp_path / "made-by-root.txt").stat().st_mode & 0o777 == 0o600
