# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The wheel, installed in an empty environment outside of any checkout: what came with it is all
that there is. It is made of the development build, which these tests share with all others;
`make soak` does the same with the release build."""

from __future__ import annotations

import email
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support import needs
from support.paths import ROOT

BUILD = os.environ.get("WARIFU_WHEEL", "")
"""A wheel that has been built; without one the development build's is made."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if BUILD:
        return Path(BUILD)
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([ROOT / "scripts" / "wheel", "--dev", "--out", out], check=True, timeout=900)
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the wheel and what it requires, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=120)
    pip = [folder / "venv" / "bin" / "pip", "--quiet", "--disable-pip-version-check"]
    locked = ["install", "--require-hashes", "-r", wheel.parent / "requirements.lock"]
    subprocess.run([*pip, *locked], check=True, timeout=600)
    subprocess.run([*pip, "install", "--no-index", "--no-deps", wheel], check=True, timeout=120)
    return folder / "venv"


class Shell:
    """Commands of the environment in a folder of their own."""

    def __init__(self, environment: Path, folder: Path) -> None:
        self.bin = environment / "bin"
        self.folder = folder
        self.variables = {
            "PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(folder),
        }  # fmt: skip

    def run(self, *command: str, code: int = 0, timeout: int = 120) -> str:
        """What a command prints, which must end with ``code``."""
        done = subprocess.run(
            [self.bin / command[0] if command[0] in {"warifu", "python"} else command[0],
             *command[1:]],
            cwd=self.folder, env=self.variables, capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
        assert done.returncode == code, (command, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        assert str(ROOT) not in done.stdout + done.stderr, "the checkout is not to be found"
        return done.stdout + done.stderr

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self.bin / command[0], *command[1:]], cwd=self.folder, env=self.variables
        )

    def wait_for(self, name: str) -> None:
        end = time.monotonic() + 60
        while not (self.folder / name).exists():
            assert time.monotonic() < end, name
            time.sleep(0.05)


@pytest.fixture
def shell(environment: Path, tmp_path: Path) -> Shell:
    return Shell(environment, tmp_path)


@pytest.fixture
def ended() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that end with the test."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in reversed(started):
        process.terminate()
        process.wait(timeout=60)


def profile_of_this_host(folder: Path) -> None:
    """Something to call this machine by: measuring takes no figure from it."""
    devices = folder / "profiles" / "devices"
    devices.mkdir(parents=True)
    text = (ROOT / "profiles" / "devices" / "xeon-2-5-ghz-vm.toml").read_text(encoding="utf-8")
    (devices / "this-host.toml").write_text(text.replace('"xeon-2-5-ghz-vm"', '"this-host"'))


def names(wheel: Path, pattern: str) -> Sequence[str]:
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if re.search(pattern, name)]


def test_every_profile_template_and_licence_is_in_the_wheel(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "profiles", "python/warifu"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    expected = {
        f"warifu/{name}" if name.startswith("profiles/") else name.removeprefix("python/")
        for name in listed.stdout.split()
        if (ROOT / name).exists()
    }
    assert expected - set(names(wheel, "")) == set()
    assert len(names(wheel, r"^warifu/profiles/devices/.*\.toml$")) > 3
    assert len(names(wheel, r"^warifu/templates/.*\.toml$")) > 3
    assert len(names(wheel, r"licenses/LICENSE-(APACHE|MIT)$")) == 2
    assert len(names(wheel, r"licenses/third-party/.*LICENSE")) > 100


def test_the_metadata_say_what_it_is(wheel: Path) -> None:
    (name,) = names(wheel, r"dist-info/METADATA$")
    with zipfile.ZipFile(wheel) as archive:
        about = email.message_from_bytes(archive.read(name))
        (tags,) = names(wheel, r"dist-info/WHEEL$")
        assert "Tag: cp311-abi3-linux_" in archive.read(tags).decode()
    assert about["License-Expression"] == "Apache-2.0 OR MIT"
    assert about["Requires-Python"] == ">=3.11"
    assert "Typing :: Typed" in about.get_all("Classifier", [])
    assert str(about.get_payload()).lstrip().startswith("# Warifu")


def test_it_requires_what_it_imports(environment: Path) -> None:
    """`pip check` sees that the requirements hold; that they suffice, the other tests."""
    pip = [environment / "bin" / "pip", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    shown = subprocess.run([*pip, "list", "--format", "json"], capture_output=True, check=True)
    assert "pytest" not in {one["name"] for one in json.loads(shown.stdout)}


def test_a_question_is_answered(shell: Shell) -> None:
    said = shell.run(
        "warifu", "predict", "--device", "gr-peach", "--server", "xeon-2-5-ghz-vm", "--link",
        "lte-m", "--stack", "https/tls1.3/server", "--certificate", "rsa-2048", "--set",
        "predict_trials=200",
    )  # fmt: skip
    assert "gr-peach" in said
    shell.run("warifu", "report", "results/question")
    assert (shell.folder / "results" / "question" / "report.html").stat().st_size > 10_000
    shell.run("warifu", "init", "meter.toml")
    assert "warifu 0." in shell.run("warifu", "version")


def test_a_program_asks(shell: Shell) -> None:
    script = (
        "import warifu\n"
        "asked = warifu.ask(device='gr-peach', server='xeon-2-5-ghz-vm', link='lte-m', "
        "stack='https/tls1.3/server', certificate='rsa-2048', trials=100)\n"
        "print(asked.frame()['p50_ns'].to_list(), asked.answer.question)\n"
    )
    assert re.match(r"\[\d+\.\d+\] ", shell.run("python", "-c", script))


@needs.program("openssl")
def test_a_sim_signs_through_the_agent(shell: Shell, ended: list[subprocess.Popen[bytes]]) -> None:
    shell.run("warifu", "card", "create")
    shell.run("warifu", "card", "csr", "CN=device-1", "-o", "device.csr")
    module = Path(shell.run("warifu", "card", "module").strip())
    assert module.parent == next(shell.bin.parent.glob("lib/python3*")) / "site-packages/warifu/lib"
    ended.append(shell.start("warifu", "card", "serve"))
    shell.wait_for("warifu/card.sock")
    ended.append(shell.start("warifu", "agent", "start"))
    shell.wait_for("warifu-agent.sock")
    shell.variables["WARIFU_CARD"] = "agent"
    assert shell.run("warifu", "token", "--audience", "https://example.org").count(".") == 2
    shell.run("warifu", "agent", "stop")


@needs.program("arm-none-eabi-gcc")
def test_a_program_runs_on_the_simulated_cortex_m3(shell: Shell) -> None:
    source = 'int main(void) { return __builtin_printf("hello\\n") != 6; }\n'
    (shell.folder / "hello.c").write_text(source)
    shell.run(
        "arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-O2", "-g", "--specs=rdimon.specs",
        "hello.c", "-o", "hello.elf",
    )  # fmt: skip
    assert "hello" in shell.run("warifu", "m3", "run", "hello.elf", "--mhz", "100")
    shell.run("warifu", "m3", "init", "chip")


@needs.program("setpriv")
@needs.root
def test_measuring_says_what_it_needs(shell: Shell) -> None:
    """Without root, and where nothing of it is installed."""
    shell.folder.chmod(0o777)
    for folder in [*shell.folder.parents, *shell.bin.parents]:
        # Closed to other users by pytest.
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o077:
            folder.chmod(0o755)
    profile_of_this_host(shell.folder)
    said = shell.run(
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(shell.bin / "warifu"),
        "measure", "--stack", "https/tls1.3/server", code=3,
    )  # fmt: skip
    assert "root" in said
    assert len(said.splitlines()) <= 3


@needs.root
@needs.program("nginx")
def test_it_measures_with_the_programs_that_came_with_it(shell: Shell) -> None:
    profile_of_this_host(shell.folder)
    shell.run("warifu", "measure", "--stack", "https/tls1.3/server", "--trials", "20")
    (manifest,) = shell.folder.glob("results/*/measured/manifest.json")
    assert "warifu-tls-client" in json.loads(manifest.read_text())["tools"]
