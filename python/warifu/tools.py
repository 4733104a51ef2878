# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Where the programs are that the lab drives, which versions they have, and how to get them."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BINARIES_VARIABLE = "WARIFU_BIN_DIR"
"""Environment variable: a folder that is searched for Warifu's own programs before all others."""

SYSTEM_FOLDERS = ("/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/local/bin")
"""Searched beside PATH: Debian keeps nginx and ip in sbin, which is not on everyone's PATH."""


class ToolMissing(Exception):  # noqa: N818 - what happened, not what it is
    """A program is not there; its text is one line that says how to get it."""

    def __init__(self, tool: Tool) -> None:
        """Names the tool and the fix."""
        super().__init__(f"{tool.name} is missing: {tool.hint}")
        self.tool = tool


@dataclass(frozen=True)
class Tool:
    """A program, what it is for, and the command that installs it."""

    name: str
    purpose: str
    hint: str
    version_arguments: tuple[str, ...] = ("--version",)
    needed: bool = True
    own: bool = False
    library: bool = False
    """Loaded by programs, not run."""


def _apt(package: str) -> str:
    return f"`apt-get install {package}`"


PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """The project's folder that this package lies in; None where it was installed from a wheel,
    which has programs in `bin`, libraries in `lib` and profiles of its own."""
    root = PACKAGE.parents[1]
    return root if (root / "Cargo.toml").is_file() and PACKAGE.parent.name == "python" else None


def repair() -> str:
    """What makes this installation whole again."""
    return "run `make setup`" if checkout() else "install Warifu's wheel again"


_OWN_HINT = (
    f"`make setup` builds it, or set {BINARIES_VARIABLE} to the folder that holds it"
    if checkout()
    else f"install Warifu's wheel again, or set {BINARIES_VARIABLE} to the folder that holds it"
)
_PROBE_HINT = "then `make setup` builds it" + ("" if checkout() else " in a clone of Warifu")

TOOLS: tuple[Tool, ...] = (
    Tool("nginx", "the server under measurement", _apt("nginx-light"), ("-v",)),
    Tool("openssl", "its version is recorded", _apt("openssl"), ("version",)),
    # libcoap 4.3's programs print their version with their usage alone, after a complaint.
    Tool("coap-server-notls", "the CoAP server under measurement", _apt("libcoap3-bin"), ("-?",)),
    Tool(
        "coap-client-notls",
        "uploads the body that the server responds with",
        _apt("libcoap3-bin"),
        ("-?",),
    ),
    Tool("ip", "network namespaces and routes", _apt("iproute2"), ("-Version",)),
    Tool("sysctl", "TCP settings of the namespaces", _apt("procps")),
    Tool("setpriv", "ends the lab's programs when the lab ends", _apt("util-linux")),
    Tool("taskset", "gives each end a processor of its own", _apt("util-linux")),
    Tool("tcpdump", "packet captures", _apt("tcpdump"), needed=False),
    Tool("warifu-agent", "holds SIMs for other programs", _OWN_HINT, own=True),
    Tool("warifu-card-server", "the virtual SIM", _OWN_HINT, own=True),
    Tool(
        "libwarifu_pkcs11.so",
        "lets programs use an IoT SAFE SIM",
        _OWN_HINT,
        own=True,
        library=True,
    ),
    Tool("ddsperf", "sends samples over Cyclone DDS", _apt("cyclonedds-tools"), needed=False),
    Tool(
        "libwarifu_dds_crypto.so",
        "protects what Cyclone DDS sends",
        _OWN_HINT,
        needed=False,
        own=True,
        library=True,
    ),
    Tool(
        "libwarifu_evp_probe.so",
        "shows what programs ask of OpenSSL",
        _OWN_HINT,
        needed=False,
        own=True,
        library=True,
    ),
    Tool(
        "libwarifu_psk_preload.so",
        "gives nginx a pre-shared key from outside",
        _OWN_HINT,
        needed=False,
        own=True,
        library=True,
    ),
    Tool("warifu-link", "the emulated link", _OWN_HINT, own=True),
    Tool("warifu-tls", "certificates for the lab", _OWN_HINT, own=True),
    Tool("warifu-tls-client", "the lab's TLS client", _OWN_HINT, own=True),
    Tool("warifu-coap-client", "the lab's CoAP client", _OWN_HINT, own=True),
    Tool(
        "cyclonedds-probe",
        "the lab's DDS participants",
        f"`apt-get install cyclonedds-dev cyclonedds-tools`, {_PROBE_HINT}",
        needed=False,
        own=True,
    ),
    Tool(
        "fastdds-probe",
        "the lab's DDS participants of Fast DDS",
        f"`apt-get install libfastrtps-dev`, {_PROBE_HINT}",
        needed=False,
        own=True,
    ),
    Tool("warifu-calibrate-bench", "times TLS messages and tokens", _OWN_HINT, own=True),
    Tool(
        "warifu-aead-bench",
        "times the AEADs of the DDS plugin",
        _OWN_HINT,
        needed=False,
        own=True,
    ),
)
"""Every program that the lab, calibration and the virtual SIM run, and the PKCS#11 module."""


def tool(name: str) -> Tool:
    """The entry of a program in `TOOLS`; KeyError for others."""
    for entry in TOOLS:
        if entry.name == name:
            return entry
    raise KeyError(name)


def find(name: str) -> Path:
    """The path of a program of `TOOLS`.

    Warifu's own are looked for in $WARIFU_BIN_DIR, in the package where it came as a wheel, beside
    the Python interpreter, on PATH, and in the checkout's target/release; libraries also in the
    environment's lib, and not on PATH; all others on PATH and in the system's folders.

    Raises ToolMissing, which names the fix.
    """
    entry = tool(name)
    for folder in _folders(entry):
        candidate = folder / name
        # Not Path.is_file: a folder of PATH that may not be read is an error to it (Python 3.11).
        # A library is loaded, not run.
        right = os.R_OK if entry.library else os.X_OK
        if os.path.isfile(candidate) and os.access(candidate, right):  # noqa: PTH113
            return candidate
    raise ToolMissing(entry)


def version(name: str) -> str:
    """What the program says of its version, one line; Warifu's own with their SHA-256.

    Raises ToolMissing.
    """
    path = find(name)
    text = "" if tool(name).library else _version_text(path, tool(name).version_arguments)
    if tool(name).own:
        return f"{text or name} sha256:{sha256(path)[:16]}"
    return text


def build(name: str) -> str:
    """How a program of ours that times something was built, `release` or `development`; empty if it
    does not say, as older ones do. Raises ToolMissing."""
    try:
        said = json.loads(_output(find(name), "--build"))
    except ValueError:
        return ""
    return str(said.get("build", "")) if isinstance(said, dict) else ""


def program() -> str:
    """How `warifu` itself is called here, by its path, as a shell takes it.

    sudo looks in folders of its own (sudoers(5), secure_path) and never in a virtual environment.
    """
    beside = Path(sys.executable).with_name("warifu")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("warifu")
    return shlex.quote(found or "warifu")


def as_root(arguments: str) -> str:
    """A command line of ours that runs as root: with sudo for other users."""
    return f"{'' if os.geteuid() == 0 else 'sudo '}{program()} {arguments}"


#: What a make that runs this program says to those that it starts: flags, and variables of its
#: command line, which are this program's own here.
_OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MAKEFILES", "GNUMAKEFLAGS")


def make_environment() -> dict[str, str]:
    """The environment for a make that we start ourselves."""
    return {name: value for name, value in os.environ.items() if name not in _OF_MAKE}


def openssl_of_nginx() -> str:
    """The OpenSSL that nginx runs with, for example `3.0.19`; empty if it does not say.

    `nginx -V` prints `built with OpenSSL A` and, where that differs, `(running with OpenSSL B)`.
    """
    text = _output(find("nginx"), "-V")
    found = re.search(r"running with OpenSSL (\S+)", text) or re.search(
        r"built with OpenSSL (\S+)", text
    )
    return found.group(1) if found else ""


def sha256(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _folders(entry: Tool) -> list[Path]:
    on_path = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part]
    if not entry.own:
        return on_path + [Path(folder) for folder in SYSTEM_FOLDERS]
    beside = Path(sys.executable).parent
    folders = [beside.parent / "lib"] if entry.library else [beside, *on_path]
    # Those of a wheel are of its version.
    folders.insert(0, PACKAGE / ("lib" if entry.library else "bin"))
    if os.environ.get(BINARIES_VARIABLE):
        folders.insert(0, Path(os.environ[BINARIES_VARIABLE]))
    root = checkout()
    return folders if root is None else [*folders, root / "target" / "release"]


@functools.cache
def _version_text(path: Path, arguments: tuple[str, ...]) -> str:
    lines = [line.strip() for line in _output(path, *arguments).splitlines() if line.strip()]
    with_version = [line for line in lines if re.search(r"\d\.\d", line)]
    return (with_version or lines or [""])[0]


def _output(path: Path, *arguments: str) -> str:
    """Both streams: `nginx -v` answers on stderr."""
    try:
        done = subprocess.run(
            [path, *arguments], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
