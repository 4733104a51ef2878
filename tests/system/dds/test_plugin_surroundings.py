# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The plugin in programs that it must not end, and must not obey: with a stderr that takes nothing,
with counters that nobody can write, with more rights than their user has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support import needs
from support.paths import ROOT
from support.setuid import AS_USER, path_of, setuid
from warifu.tools import find

pytestmark = [needs.program("cc")]

INIT, AEGIS = "init_crypto", "init_crypto_aegis_128l"
BEGUN = "all have begun\n"


def _compiled(path: Path, library: Path) -> Path:
    source = ROOT / "tests" / "support" / "dds_host.c"
    subprocess.run(["cc", "-o", path, path_of("LIBRARY", library), source, "-ldl"], check=True)
    return path


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program, in a folder that everybody can read, with the plugin beside it."""
    folder = tmp_path_factory.mktemp("host")
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    library = folder / "plugin.so"
    library.write_bytes(find("libwarifu_dds_crypto.so").read_bytes())
    library.chmod(0o755)
    return _compiled(folder / "host", library)


def _run(
    host: Path,
    *,
    init: str = INIT,
    domains: int = 1,
    environment: dict[str, str] | None = None,
    before: tuple[str, ...] = (),
    stderr: int = subprocess.PIPE,
    mark: bool = False,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, host, init, str(domains), *(["mark"] if mark else [])],
        env=environment or {}, stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=20,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("stderr", ["full", "broken pipe", "full pipe", "closed"])
def test_stderr_that_takes_nothing_ends_no_program(host: Path, stderr: str) -> None:
    unknown = {"WARIFU_DDS_AEAD": "ROT-13"}
    assert "ROT-13" in _run(host, environment=unknown).stderr, "there is something to say"
    if stderr == "closed":
        shell = ("sh", "-c", 'exec "$@" 2>&-', "sh")
        done = _run(host, environment=unknown, before=shell, domains=3)
    elif stderr == "full":
        with Path("/dev/full").open("w") as full:
            done = _run(host, environment=unknown, stderr=full.fileno(), domains=3)
    else:
        reads, writes = os.pipe()
        if stderr == "full pipe":
            os.set_blocking(writes, False)
            with pytest.raises(BlockingIOError):
                while os.write(writes, bytes(4096)):
                    pass
            os.set_blocking(writes, True)
        else:
            os.close(reads)
        done = _run(host, environment=unknown, stderr=writes, domains=3)
    assert (done.returncode, done.stdout.split()) == (0, ["0", "-1", "-1", "-1"])


def test_experiment_is_announced_once_in_a_process(host: Path) -> None:
    done = _run(host, init=AEGIS, domains=3)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert "EXPERIMENT" in line
    assert "AEGIS-128L is not DDS Security" in line
    assert _run(host, domains=3).stderr == "", "AES is no experiment"


def test_counters_that_cannot_be_written_are_named_at_the_beginning(
    host: Path, tmp_path: Path
) -> None:
    pipe, link, aim = tmp_path / "pipe", tmp_path / "link", tmp_path / "aim"
    os.mkfifo(pipe)
    link.symlink_to(aim)
    for path in (tmp_path / "no" / "such", pipe, link, tmp_path):
        done = _run(host, environment={"WARIFU_DDS_COUNTERS": str(path)}, mark=True)
        assert done.stdout.split() == ["0", "0"], "the domain itself works"
        said, after = done.stderr.split(BEGUN)
        assert f"WARIFU_DDS_COUNTERS is {path}: " in said
        assert "name a file" in said
        assert after == ""
    assert not aim.exists()


@needs.root
@needs.program("setpriv")
def test_program_with_more_rights_than_its_user_ignores_the_environment(
    host: Path, tmp_path: Path
) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    unknown = {"WARIFU_DDS_AEAD": "ROT-13"}
    assert _run(host, environment=unknown, before=AS_USER).stdout.split() == ["0", "-1"]
    with setuid(_compiled(tmp_path / "host", host.parent / "plugin.so")) as privileged:
        aim = tmp_path / "counters"
        for environment in (
            unknown,
            {"WARIFU_DDS_MAX_BLOCKS_PER_SESSION": "none"},
            {"WARIFU_DDS_COUNTERS": str(aim)},
        ):
            done = _run(privileged, environment=environment, before=AS_USER)
            assert (done.stdout.split(), done.stderr) == (["1", "0"], "")
        # It runs as root, who could.
        assert not aim.exists()


def test_program_loads_no_library_of_its_users(host: Path, tmp_path: Path) -> None:
    """A test gives it root's rights."""
    source, library, mark = tmp_path / "any.c", tmp_path / "any.so", tmp_path / "loaded"
    source.write_text(
        "#include <fcntl.h>\n"
        "__attribute__((constructor)) static void loaded(void) { creat(MARK, 0600); }\n"
    )
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, path_of("MARK", mark), source], check=True
    )
    for arguments in ((library, INIT, "1"), (INIT, "1", library), ("system", "1")):
        subprocess.run([host, *arguments], capture_output=True, timeout=20, check=False)
    assert not mark.exists()
    done = subprocess.run([host, "system", "1"], timeout=20, check=False)
    assert done.returncode == 2, "no function of a plugin's"
