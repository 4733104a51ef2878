# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a user can do to root's files who may run Warifu with sudo: nothing.

Links are laid by that user, with setpriv; root's file must keep owner, mode and content. Folders
are not pytest's, which only root may enter.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import needs
from support.paths import ROOT
from warifu import lock
from warifu.tools import find

pytestmark = needs.root

#: Who can read the checkout: its owner, or anybody where that is root.
USER = ROOT.stat().st_uid or 20_000
SECRET = "root's own\n"
CHOICES = ("--device", "this-host", "--link", "loopback", "--rtt", "1 ms")


def _interpreter() -> tuple[str, dict[str, str]]:
    """Python and its environment, as the user can read them: this one, or the system's with our
    packages where this one lies in a home that nobody else may enter."""
    home = Path(os.__file__).parent
    readable = all(one.stat().st_mode & stat.S_IXOTH for one in (home, *home.parents))
    if home.stat().st_uid == USER or readable:
        return sys.executable, {}
    paths = [ROOT / "python", *(path for path in map(Path, sys.path) if path.is_relative_to(ROOT))]
    own = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "WARIFU_BIN_DIR": str(BIN)}
    return "/usr/bin/python3", own


BIN = Path(sys.executable).parent


class Sudo:
    """Warifu as sudo starts it for a user, in that user's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "user"
        self.home.mkdir()
        devices = self.home / "profiles" / "devices"
        devices.mkdir(parents=True)
        text = (ROOT / "profiles" / "devices" / "xeon-2-5-ghz-vm.toml").read_text()
        # What only a calibrated machine has: the lab measures no other.
        (devices / "this-host.toml").write_text(text.replace("xeon-2-5-ghz-vm", "this-host"))
        for one in (self.home, *self.home.rglob("*")):
            os.chown(one, USER, USER)
        self.roots = folder / "root"
        self.roots.mkdir()
        self.precious = self.roots / "precious"
        self.precious.write_text(SECRET)
        self.precious.chmod(0o600)

    def __call__(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs `warifu` as root with what sudo sets (sudo(8))."""
        return self.python("-m", "warifu.cli", *map(str, arguments))

    def python(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs Python in the same way."""
        started = self.start(*arguments, **variables)
        try:
            out, err = started.communicate(timeout=90)
        finally:
            started.kill()
        return subprocess.CompletedProcess(started.args, started.returncode, out, err)

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """The same, and does not wait for it."""
        python, environment = _interpreter()
        own = {"SUDO_UID": str(USER), "SUDO_GID": str(USER), "SUDO_USER": f"user{USER}"}
        return subprocess.Popen(
            [python, *arguments],
            cwd=self.home,
            env=os.environ | environment | own | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def user(self, *command: str | Path) -> None:
        """Runs a program as the user."""
        line = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", *command]
        subprocess.run(line, cwd=self.home, check=True)

    def link(self, name: str, target: Path | None = None) -> None:
        """The user lays a link, to root's file if not told otherwise."""
        self.user("mkdir", "-p", (self.home / name).parent)
        self.user("ln", "-s", target or self.precious, name)

    def roots_files(self) -> list[Path]:
        """What root owns in the user's folder."""
        return [one for one in self.home.rglob("*") if one.lstat().st_uid != USER]


@pytest.fixture
def sudo() -> Iterator[Sudo]:
    folder = Path(tempfile.mkdtemp(prefix="warifu-sudo-"))
    try:
        folder.chmod(0o755)
        found = Sudo(folder)
        yield found
        about = found.precious.stat()
        assert (about.st_uid, stat.S_IMODE(about.st_mode)) == (0, 0o600)
        assert found.precious.read_text() == SECRET
        assert list(found.roots.iterdir()) == [found.precious]
        assert found.roots_files() == []
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def predicted(sudo: Sudo) -> Sudo:
    """A prediction is in `here` already."""
    done = sudo("predict", *CHOICES, "--out", "here")
    assert done.returncode == 0, done.stderr
    return sudo


def test_prediction_belongs_to_the_user(predicted: Sudo) -> None:
    assert (predicted.home / "here" / "predicted" / "manifest.json").stat().st_uid == USER


def test_lock_that_is_a_link(sudo: Sudo) -> None:
    sudo.link("here/.warifu.lock")
    done = sudo("predict", *CHOICES, "--out", "here")
    assert done.returncode == 3
    assert ".warifu.lock" in done.stderr


#: Holds the folder `here`; waits between opening a lock that it cannot write and asking for it.
_WAITS = """
import fcntl
from pathlib import Path
from warifu import identity
from warifu import lock
from warifu.tools import find

identity.begin()
ask = fcntl.flock
def once_told(descriptor, how):
    fcntl.flock = ask
    print("opened", flush=True)
    input()
    ask(descriptor, how)
fcntl.flock = once_told
try:
    with lock.held(Path("here"), "predict"):
        print("held")
except lock.FolderBusy as error:
    print(error)
"""


def test_lock_that_another_process_made_meanwhile_is_not_removed(sudo: Sudo) -> None:
    """One that root left behind is in its place when it is opened, and another's when it is had."""
    sudo.user("mkdir", "here")
    path = sudo.home / "here" / lock.FILE_NAME
    path.touch(0o644)
    second = sudo.start("-c", _WAITS)
    try:
        assert second.stdout
        assert second.stdout.readline() == "opened\n"
        path.unlink()
        with lock.held(path.parent, "run"):
            before = path.stat().st_ino
            said, _ = second.communicate("go on\n", timeout=30)
            assert f"process {os.getpid()} (warifu run) is writing there" in said
            assert path.stat().st_ino == before
    finally:
        second.kill()
        second.wait()
    assert not path.exists()


def test_folder_of_results_that_is_a_link_to_one_of_root(sudo: Sudo) -> None:
    sudo.link("here", sudo.roots)
    done = sudo("predict", *CHOICES, "--out", "here")
    assert done.returncode == 3
    assert f"files are read and written as user{USER}" in done.stderr


@pytest.mark.parametrize("half", ["measured", "predicted.partial", "predicted"])
def test_half_that_is_a_link_to_a_folder_of_root(sudo: Sudo, half: str) -> None:
    """Results were given back through it: root's files became the user's."""
    sudo.link(f"here/{half}", sudo.roots)
    sudo("predict", *CHOICES, "--out", "here")
    sudo("measure", *CHOICES, "--trials", "1", "--out", "here")


def test_partial_page_that_is_a_link(predicted: Sudo) -> None:
    predicted.link("here/.report.html.partial")
    done = predicted("report", "here")
    assert done.returncode == 0, done.stderr
    assert (predicted.home / "here" / "report.html").stat().st_uid == USER


def test_page_that_is_a_link_is_replaced(predicted: Sudo) -> None:
    predicted.link("page.html")
    predicted("report", "here", "--out", "page.html")


def test_study_that_is_a_link_to_a_file_of_root_is_not_shown(sudo: Sudo) -> None:
    sudo.link("study.toml")
    done = sudo("predict", "study.toml")
    assert done.returncode != 0
    assert SECRET.strip() not in done.stdout + done.stderr


def test_study_is_written_through_no_link(sudo: Sudo) -> None:
    sudo.link("smart-meter.toml")
    assert sudo("init").returncode != 0
    done = sudo("init", "--force")
    assert done.returncode == 0, done.stderr
    # In the place of the link.
    about = (sudo.home / "smart-meter.toml").lstat()
    assert (stat.S_ISREG(about.st_mode), about.st_uid) == (True, USER)


def test_temporary_files_of_root_lie_in_no_folder_of_the_user(sudo: Sudo) -> None:
    """nginx's configuration is among them."""
    code = "from warifu import identity; identity.begin(); import tempfile; "
    done = sudo.python("-c", f"{code}print(tempfile.gettempdir())", TMPDIR=str(sudo.home))
    assert Path(done.stdout.strip()).stat().st_uid == 0


def test_program_that_needs_no_root_runs_as_the_user(sudo: Sudo) -> None:
    """As git does, which runs what a checkout's configuration says."""
    code = "from warifu import identity; import subprocess; identity.begin(); "
    done = sudo.python("-c", f"{code}subprocess.run(['id', '-u'], **identity.of_caller())")
    assert done.stdout == f"{USER}\n"


@needs.program("nginx")
def test_measurement_belongs_to_the_user_and_follows_no_link(predicted: Sudo) -> None:
    """The lab stays root, in its own folder; what it measured is written as the user."""
    manifest = json.loads((predicted.home / "here" / "predicted" / "manifest.json").read_text())
    case_id = manifest["cases"][0]["case_id"]
    for name in (".manifest.json.partial", f"observations/.{case_id}.parquet.partial"):
        predicted.link(f"here/measured/{name}")
    predicted.link("here/.comparison.json.partial")
    done = predicted("run", *CHOICES, "--trials", "3", "--out", "here")
    assert done.returncode in (0, 1), done.stderr
    for name in ("measured/manifest.json", f"measured/observations/{case_id}.parquet",
                 "comparison.json", "report.html"):  # fmt: skip
        path = predicted.home / "here" / name
        assert not path.is_symlink()
        assert path.stat().st_uid == USER


_MODULE = """
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) {
    FILE *out = fopen("loaded-as", "w");
    if (out) { fprintf(out, "%d %d", (int)getuid(), (int)geteuid()); fclose(out); }
}
"""


@needs.program("gcc")
def test_module_of_a_token_is_loaded_as_the_user(sudo: Sudo) -> None:
    (sudo.home / "module.c").write_text(_MODULE)
    os.chown(sudo.home / "module.c", USER, USER)
    sudo.user("gcc", "-shared", "-fPIC", "-o", "module.so", "module.c")
    done = sudo("calibrate", "token", "--module", "./module.so", "--trials", "2")
    assert done.returncode != 0, "it is no PKCS#11 module"
    assert (sudo.home / "loaded-as").read_text() == f"{USER} {USER}"


@needs.program("gcc")
def test_calibrated_profile_belongs_to_the_user(sudo: Sudo) -> None:
    sudo.link("profiles/key-stores/virtual-iot-safe-sakomoto.toml")
    done = sudo("calibrate", "token", "--virtual-card", "iot-safe-sakomoto", "--trials", "4")
    assert done.returncode != 0
    (sudo.home / "profiles/key-stores/virtual-iot-safe-sakomoto.toml").unlink()
    done = sudo("calibrate", "token", "--virtual-card", "iot-safe-sakomoto", "--trials", "4")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("where", ["state", "socket", "dir"])
def test_card_is_served_through_no_link(sudo: Sudo, where: str) -> None:
    """`card serve --pcsc` stays root, for pcscd and its namespace."""
    made = sudo("card", "create", "--state", "card.state")
    assert made.returncode == 0, made.stderr
    sudo.link("linked", sudo.roots)
    paths = {"state": "card.state", "socket": "card.sock", "dir": "pcscd"}
    paths[where] = {"state": "linked/precious", "socket": "linked/socket", "dir": "linked"}[where]
    done = sudo("card", "serve", "--pcsc", "--state", paths["state"],
                "--socket", paths["socket"], "--pcscd-dir", paths["dir"])  # fmt: skip
    assert done.returncode != 0
    assert "ermission denied" in done.stderr


def test_pcscd_of_root_follows_no_link_in_the_folder_of_its_socket(sudo: Sudo) -> None:
    """pcscd writes its number to a file beside its socket, as root, and lets all read it."""
    made = sudo("card", "create", "--state", "card.state")
    assert made.returncode == 0, made.stderr
    sudo.link("pcscd/pcscd.pid")
    python, environment = _interpreter()
    served = subprocess.Popen(
        [python, "-m", "warifu.cli", "card", "serve", "--state", "card.state",
         "--socket", "card.sock", "--pcscd-dir", "pcscd"],
        cwd=sudo.home, env=os.environ | environment | {"SUDO_UID": str(USER)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert served.stderr is not None
        said = ""
        while "Ctrl-C ends it" not in said:
            line = served.stderr.readline()
            assert line, said
            said += line
        # The socket is there, and theirs to use.
        link = sudo.home / "pcscd" / "pcscd.comm"
        assert link.is_symlink()
        assert stat.S_ISSOCK(link.stat().st_mode)
        assert link.lstat().st_uid == USER
    finally:
        served.terminate()
        served.wait(timeout=30)
        served.stderr.close()
    assert not link.is_symlink()
    assert (sudo.home / "pcscd" / "pcscd.pid").is_symlink()


@pytest.mark.parametrize("what", ["process", "setting"])
def test_link_into_proc_shows_the_user_nothing_of_root(sudo: Sudo, what: str) -> None:
    """The kernel asks there for more than the owner of files: for the process's right to trace
    others, and for its effective user."""
    made = sudo("card", "create", "--state", "card.state")
    assert made.returncode == 0, made.stderr
    roots = subprocess.Popen(["sleep", "60"], cwd=sudo.roots)
    try:
        target = {
            # Of a folder that only root may enter.
            "process": f"/proc/{roots.pid}/cwd/open",
            # Mode 0600, and shown to whom root has become as well.
            "setting": "/proc/sys/net/ipv4/tcp_fastopen_key",
        }[what]
        (sudo.roots / "open").write_text("classified\n")
        (sudo.roots / "open").chmod(0o644)
        sudo.roots.chmod(0o700)
        sudo.link("faults", Path(target))
        done = sudo("card", "serve", "--pcscd-dir", "pcscd", "--state", "card.state",
                    "--socket", "card.sock", "--faults", "faults")  # fmt: skip
    finally:
        roots.kill()
        roots.wait()
        (sudo.roots / "open").unlink()
    assert done.returncode != 0
    assert "classified" not in done.stderr
    assert "ermission denied" in done.stderr or "/proc" in done.stderr, done.stderr
    assert "expected KEY=VALUE" not in done.stderr


@pytest.mark.parametrize(
    "number", ["-1", "+5", "1000 ", "abc", "\u0662\u0660", "4294967295", "9" * 23]
)
def test_number_of_a_caller_that_is_none_is_refused(sudo: Sudo, number: str) -> None:
    done = sudo.python("-m", "warifu.cli", "init", "study.toml", SUDO_UID=number)
    assert done.returncode != 0
    assert f"SUDO_UID is {number!r}: expected the number of the user" in done.stderr
    assert not (sudo.home / "study.toml").exists()


def test_folder_of_a_stranger_does_not_stop_the_lab(sudo: Sudo) -> None:
    """Named like a lab's that has ended, and deeper than any program can walk by recursion."""
    deep = """
import os, sys
os.mkdir(sys.argv[1])
os.chdir(sys.argv[1])
for _ in range(3000):
    os.mkdir("a")
    os.chdir("a")
"""
    name = Path("/tmp") / "warifu-lab-4194304-1-stranger"
    sudo.user("/usr/bin/python3", "-c", deep, str(name))
    try:
        done = sudo.python("-c", "from warifu.lab import workplace; print(workplace.leftovers())")
        assert done.returncode == 0, done.stderr
        assert str(name) not in done.stdout
    finally:
        subprocess.run(["rm", "-rf", name], check=True)


@needs.program("arm-none-eabi-gcc")
@pytest.mark.parametrize(
    "laid", ["results", "results/observations", "results/manifest.json", "results.partial"]
)
def test_run_of_a_program_is_written_through_no_link(sudo: Sudo, laid: str) -> None:
    """`warifu m3` needs no root, and so has none when it writes."""
    (sudo.home / "hello.c").write_text("int main(void) { return 0; }\n")
    compiler = ("arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "--specs=rdimon.specs")
    sudo.user(*compiler, "hello.c", "-o", "hello.elf")
    os.chown(sudo.home / "hello.c", USER, USER)
    first = sudo("m3", "run", "hello.elf", "--out", "first")
    assert first.returncode == 0, first.stderr
    assert (sudo.home / "first" / "manifest.json").stat().st_uid == USER
    # Through the link lie what a run would replace, and a folder that takes new files.
    target = sudo.precious if laid.endswith(".json") else sudo.roots
    sudo.link(laid, target)
    done = sudo("m3", "run", "hello.elf", "--out", "results")
    assert (done.returncode == 0) == (laid == "results.partial"), done.stderr
    assert SECRET not in done.stdout + done.stderr


_STOPS = """
import threading
from pathlib import Path
from warifu import identity
from warifu.lab.cell import Bench

class Lab:
    def wait(self, patience_s): return None
    def check(self): pass

def stop():
    Path("asked").touch()
    thread = threading.Thread(target=Path("by-a-thread").touch)
    thread.start()
    thread.join()
    return True

identity.begin()
bench = Bench.__new__(Bench)
with identity.as_root():
    print(bench._wait(Lab(), Lab(), stop))
"""


def test_whoever_stops_a_measurement_is_asked_as_the_user(sudo: Sudo) -> None:
    """A part runs as root; what the caller does meanwhile, and threads begun there, do not."""
    done = sudo.python("-c", _STOPS)
    assert done.stdout == "False\n", done.stderr
    for name in ("asked", "by-a-thread"):
        assert (sudo.home / name).stat().st_uid == USER


def test_keystore_belongs_to_the_user(sudo: Sudo) -> None:
    """It needs no root, and gives it up; so does openssl, which it starts."""
    done = sudo("dds", "keystore", "keys", "-e", "/talker")
    assert done.returncode == 0, done.stderr
    assert (sudo.home / "keys" / "enclaves" / "talker" / "key.pem").stat().st_uid == USER


def test_keystore_that_is_a_link_to_a_folder_of_root(sudo: Sudo) -> None:
    sudo.link("keys", sudo.roots)
    done = sudo("dds", "keystore", "keys", "-e", "/talker")
    assert done.returncode in {2, 3}
    sudo.user("mkdir", "made")
    sudo.link("made/enclaves", sudo.roots)
    assert sudo("dds", "keystore", "made", "-e", "/talker").returncode in {2, 3}


def test_profile_and_its_command_are_the_users(sudo: Sudo) -> None:
    program = sudo.home / "evp-program"
    source = ROOT / "tests" / "support" / "evp_program.c"
    subprocess.run(["cc", "-pthread", "-o", program, source, "-lcrypto"], check=True)
    os.chown(program, USER, USER)
    command = ["sh", "-c", 'id -u >who; exec "$@"', "sh", "./evp-program", "gcm", "3"]
    profile = ["-m", "warifu.cli", "dds", "profile", "--out"]
    library = str(find("libwarifu_evp_probe.so").parent)
    done = sudo.python(*profile, "seen", "--", *command, WARIFU_BIN_DIR=library)
    assert done.returncode == 0, done.stderr
    assert "3 encryptions" in done.stdout.splitlines()[0]
    assert (sudo.home / "who").read_text().strip() == str(USER)
    assert (sudo.home / "seen" / "manifest.json").stat().st_uid == USER
    sudo.link("link", sudo.roots)
    refused = sudo.python(*profile, "link", "--", "touch", "ran", WARIFU_BIN_DIR=library)
    assert "link: is a link" in refused.stderr
    assert not (sudo.home / "ran").exists()
