# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What README and docs/how-to/real-sim.md show of a SIM, as it stands there, from a shell without
anything set up."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from pathlib import Path

from support.paths import ROOT
from support.programs import PIN, free_port

SECTION = "## A SIM that you do not have"


def shown() -> str:
    """The section's commands."""
    section = (ROOT / "README.md").read_text().partition(SECTION)[2]
    found = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert found
    return found[1]


def running(group: int) -> list[str]:
    """What of a process group still runs after a while, in which it may end."""
    listing = ["ps", "-e", "-o", "pgid=,stat=,args="]
    end = time.monotonic() + 10
    while True:
        rows = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
        found = [row.split(maxsplit=2) for row in rows.splitlines()]
        left = [row[2] for row in found if row[0] == str(group) and not row[1].startswith("Z")]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)


def test_section_of_readme_waits_for_what_it_starts() -> None:
    """A machine may be slower than any pause: what follows waits for sockets, not for a time."""
    pauses = re.findall(r"sleep [\d.]+", shown())
    assert pauses == ["sleep 0.1"] * 2, "each within a loop that ends when something is there"
    assert shown().count("until ") == 2
    assert "--retry-connrefused" in shown()


def run_shell(script: str, folder: Path) -> str:
    """What a shell says that runs a script, which must succeed and leave nothing behind."""
    (folder / ".venv").symlink_to(ROOT / ".venv")
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder),
        "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    shell = subprocess.Popen(
        ["bash", "-eu", "-c", script], cwd=folder, env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        # Ends only when nobody has its output open any more: what runs on has.
        said, _ = shell.communicate(timeout=120)
    finally:
        left = running(shell.pid)
        if left:
            os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, said
    assert not left, said
    return said


def typed_at(script: str, folder: Path) -> str:
    """The same at a terminal, where the PIN is typed whenever a program asks for one."""
    (folder / ".venv").symlink_to(ROOT / ".venv")
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execve("/bin/bash", ["bash", "-eu", "-c", script], environment)
    said, answered, end = b"", 0, time.monotonic() + 120
    try:
        # EIO: nobody has the terminal open any more.
        with contextlib.suppress(OSError):
            while time.monotonic() < end:
                if select.select([terminal], [], [], 1)[0]:
                    said += os.read(terminal, 4096)
                if re.search(rb"PIN[^\n]*: ?$", said[answered:]):
                    answered = len(said)
                    while termios.tcgetattr(terminal)[3] & termios.ECHO:
                        # What is typed before the program is ready for it is thrown away.
                        time.sleep(0.01)
                    os.write(terminal, f"{PIN}\n".encode())
        _, status = os.waitpid(process, os.WNOHANG if time.monotonic() > end else 0)
        assert not running(process), said.decode()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        os.close(terminal)
    text = said.decode(errors="replace")
    assert os.waitstatus_to_exitcode(status) == 0, text
    return text


def test_section_of_readme_runs_and_leaves_nothing_behind(tmp_path: Path) -> None:
    said = run_shell(shown().replace("8443", str(free_port())), tmp_path)
    assert re.search(r"Subject: CN ?= ?device-1", said)
    assert re.search(r"^[\w-]+\.[\w-]+\.[\w-]+$", said, re.MULTILINE), "a JSON Web Token"


#: A card with certificates, on which the commands of the page run; then the issuer's certificate
#: lies where the operator's would.
CARD = """
. .venv/bin/activate
export XDG_RUNTIME_DIR=$PWD
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -keyout ca.key \\
    -out issuer.pem -subj /CN=operator
echo 1234 >pin
warifu card create --pin-file pin
warifu card csr --pin-file pin CN=device-1 -o first.csr
openssl x509 -req -in first.csr -CA issuer.pem -CAkey ca.key -days 2 -out first.pem
warifu card import --certificate first.pem --ca issuer.pem
warifu card serve & card=$!
trap 'kill $card; wait $card' EXIT
for _ in $(seq 100); do pkcs11-tool --module $(warifu card module) -L >/dev/null && break; done
"""
#: What the page leaves to whoever reads it, and what the virtual card calls it.
NAMES = {"LABEL": "client", "TOKEN": "warifu"}


def test_commands_for_label_and_certificate_of_a_real_sim(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "real-sim.md").read_text()
    section = page.partition("## The key's label and the operator's certificate\n")[2]
    section = section.partition("\n## ")[0]
    blocks = re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)
    assert len(blocks) == 4
    commands = "".join(re.sub(r"^    ", "", one, flags=re.MULTILINE) for one in blocks)
    for name, own in NAMES.items():
        assert name in commands
        commands = re.sub(rf"\b{name}\b", own, commands)
    said = typed_at(CARD + commands, tmp_path).replace("\r\n", "\n")
    assert re.search(r"token label +: warifu", said)
    assert re.search(r"^ +label: +client", said, re.MULTILINE)
    assert re.search(r"^subject=CN ?= ?device-1\nissuer=CN ?= ?operator", said, re.MULTILINE)
    assert "device.pem: OK" in said
    assert said.rstrip().endswith("Verified OK")
    asked = ["openssl", "req", "-in", tmp_path / "device-1.csr", "-verify", "-noout", "-subject"]
    request = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert "CN = device-1" in request.stdout


def test_setup_installs_what_the_section_runs() -> None:
    text = (ROOT / "scripts" / "setup").read_text()
    always = " ".join(re.findall(r"^packages\+?=\((.*?)\)", text, re.DOTALL | re.MULTILINE)).split()
    assert {"curl", "libengine-pkcs11-openssl", "openssl"} <= set(always)
