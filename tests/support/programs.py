# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A virtual card with its certificate, and real programs that run with the module."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from support import sim
from warifu import tools

PIN = "1234"
#: Who the card's certificate names.
DEVICE = "device-1"
#: Who the certificate of a key outside the card names.
OPERATOR = "operator"

TOKEN = "pkcs11:token=warifu"
KEY = f"{TOKEN};object=client;type=private;pin-value={PIN}"
PATIENCE_S = 30.0

VERSIONS: dict[str, str] = {}
"""What ran, in its own words: shown at the end of the tests."""


class ProgramFailed(AssertionError):  # noqa: N818 - what happened, not what it is
    """A program did not do what it should; with what it said."""


@dataclass(frozen=True)
class Signature:
    """A signature that the card has made, as the module's trace has it."""

    pid: int
    took_ms: float


class Authority:
    """Issues certificates; OpenSSL's command line does the work."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate = folder / "ca.pem"
        self._key = folder / "ca.key"
        openssl(
            "req", "-x509", *_new_key(self._key), "-out", self.certificate, "-days", "30",
            "-subj", "/CN=authority", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        )  # fmt: skip

    def pair(self, name: str) -> tuple[Path, Path]:
        """Certificate and key of a party whose key is a file."""
        key, request = self.folder / f"{name}.key", self.folder / f"{name}.csr"
        openssl("req", *_new_key(key), "-out", request, "-subj", f"/CN={name}")
        return self.issue(request), key

    def issue(self, request: Path) -> Path:
        """A certificate for a request, for either side of TLS on this machine."""
        extensions, out = self.folder / "extensions", request.with_suffix(".pem")
        extensions.write_text(
            # libcoap shows the first of the names.
            f"subjectAltName=DNS:{request.stem},DNS:localhost,IP:127.0.0.1\n"
            "keyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n"
        )
        openssl(
            "x509", "-req", "-in", request, "-out", out, "-days", "30",
            "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-extfile", extensions,
        )  # fmt: skip
        return out


class Device:
    """A virtual card that is served, with a certificate for its key and one of the authority."""

    def __init__(
        self,
        folder: Path,
        authority: Authority,
        *,
        pin: str | None = PIN,
        quirks: str = "strict",
        **serve: object,
    ) -> None:
        self.folder = folder
        self.state = folder / "card.state"
        self.socket = folder / "card.sock"
        self.trace = folder / "trace"
        #: WARIFU_CARD of the programs.
        self.address = f"unix:{self.socket}"
        request = folder / f"{DEVICE}.csr"
        asked = None if pin is None else {"digits": pin}
        sim.ask("create", state=self.state, pin=asked, quirks=quirks, spare_pairs=2)
        csr = sim.ask("csr", state=self.state, subject=f"CN={DEVICE}", pin=pin)["csr"]
        request.write_text(csr)
        self.certificate = authority.issue(request)
        sim.ask("import", state=self.state, certificate=self.certificate, ca=authority.certificate)
        self.server = sim.Server(self.state, socket=self.socket, **serve)

    @property
    def environment(self) -> dict[str, str]:
        """All that a program is told: nothing of what this machine's user has set up."""
        return {
            "PATH": os.environ["PATH"] + ":/usr/sbin",
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "PKCS11_MODULE_PATH": str(module()),
            "WARIFU_CARD": self.address,
            "WARIFU_PKCS11_TRACE": str(self.trace),
        }

    def trace_text(self) -> str:
        """What the module has written down so far."""
        return self.trace.read_text() if self.trace.exists() else ""

    def signatures(self) -> list[Signature]:
        """What the card has signed since the trace began."""
        # Behind a modem the signature waits for GET RESPONSE.
        signed = r"apdu COMPUTE SIGNATURE - UPDATE .* (?:9000|61[0-9A-F]{2})"
        form = re.compile(r"[\d.]+ (\d+) \d+ +([\d.]+) ms " + signed)
        found = (form.fullmatch(line) for line in self.trace_text().splitlines())
        return [Signature(int(one[1]), float(one[2])) for one in found if one]


class Running:
    """A program until the end of the `with` block, when it is gone, whatever happened."""

    def __init__(
        self,
        *command: object,
        environment: dict[str, str],
        log: Path,
        folder: Path | None = None,
        stdin: int | IO[str] | None = subprocess.DEVNULL,
    ) -> None:
        self.log = log
        words = [str(word) for word in command]
        with log.open("w") as out:
            # It ends with this process too, and its own children are of its group.
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "--", *words], stdin=stdin, stdout=out,
                stderr=subprocess.STDOUT, text=True, env=environment, cwd=folder,
                start_new_session=True,
            )  # fmt: skip

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if error is not None:
            error.add_note(f"{self.log.name} said:\n{self.said()}")

    def stop(self) -> int:
        """Ends it, and what it has started; its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            code = self.kill_all(signal.SIGKILL)
        return code

    def kill_all(self, number: signal.Signals) -> int:
        """Sends a signal to it and to what it has started; its exit code."""
        os.killpg(self.process.pid, number)
        return self.process.wait()

    def said(self) -> str:
        """Both streams."""
        return self.log.read_text(errors="replace")

    def until(self, pattern: str, patience_s: float = PATIENCE_S) -> re.Match[str]:
        """Waits for something to be said."""
        end = time.monotonic() + patience_s
        while True:
            ended = self.process.poll()
            found = re.search(pattern, self.said())
            if found:
                return found
            if ended is not None or time.monotonic() > end:
                how = "is silent" if ended is None else f"ended with {ended}"
                raise ProgramFailed(f"{self.log.name} {how}; no {pattern!r}")
            time.sleep(0.02)


def run(
    *command: object,
    environment: dict[str, str],
    folder: Path | None = None,
    stdin: str = "",
    check: bool = True,
    patience_s: float = PATIENCE_S,
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, input=stdin, capture_output=True, text=True, check=False, env=environment,
        cwd=folder, timeout=patience_s, errors="replace",
    )  # fmt: skip
    if check and done.returncode != 0:
        raise ProgramFailed(f"{words[0]}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def openssl(*arguments: object) -> str:
    """What OpenSSL's command line gives, without any card."""
    environment = {"PATH": os.environ["PATH"]}
    return run("openssl", *arguments, environment=environment).stdout


def module() -> Path:
    """The PKCS#11 module."""
    return tools.find("libwarifu_pkcs11.so")


def version(name: str, command: Iterable[object], pattern: str) -> None:
    """Puts the version of a program on record."""
    words = [str(word) for word in command]
    environment = {"PATH": os.environ["PATH"] + ":/usr/sbin"}
    done = run(*words, environment=environment, check=False)
    found = re.search(pattern, done.stdout + done.stderr)
    assert found, f"{name} says no version: {done.stdout}{done.stderr}"
    VERSIONS[name] = found[1]


_RESERVED: list[socket.socket] = []


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """A port that is free, and that nobody else gets before a program binds to it.

    The kernel gives it to no socket that asks for any port (ip(7), ip_local_port_range). To other
    tests, in this process and in others, an abstract Unix socket of its name says that it is taken,
    until this process ends. The port before it is never given out: libcoap's server uses both.
    """
    range_of_kernel = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    low, high = map(int, range_of_kernel.split())
    for port in range(10_001, 65_536, 2):
        if low <= port <= high:
            continue
        reserved = socket.socket(socket.AF_UNIX)
        try:
            reserved.bind(f"\0warifu-test-port-{port}")
            with socket.socket(socket.AF_INET, kind) as probe:
                probe.bind(("127.0.0.1", port))
        except OSError as error:
            reserved.close()
            if error.errno != errno.EADDRINUSE:
                raise
            continue
        _RESERVED.append(reserved)
        return port
    raise AssertionError("no port is free outside net.ipv4.ip_local_port_range")


def _new_key(path: Path) -> tuple[object, ...]:
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", path)
