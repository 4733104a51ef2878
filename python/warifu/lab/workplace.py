# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The lab's own place: a temporary folder and network namespaces that carry its owner's name.

The name holds the owner's process id and start time, so that what a killed lab left behind can be
told from what a living one uses, also when the process id has been given to somebody else.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from warifu import tools
from warifu.files import temporary_folder
from warifu.lab import processes
from warifu.lab.errors import LabError, LabUnavailable

NAMESPACES = Path("/run/netns")
"""Where `ip netns` keeps them (ip-netns(8))."""

_NAMESPACE = re.compile(r"warifu-(\d+)-(\d+)-[a-z]+\d*")
_FOLDER = re.compile(r"warifu-lab-(\d+)-(\d+)-\w+")


@dataclass(frozen=True)
class Leftover:
    """Something that a lab which no longer lives has left."""

    kind: str
    name: str


class Workplace:
    """A temporary folder and the namespaces of one lab; `close` removes all of it."""

    def __init__(self) -> None:
        """Makes the folder."""
        owner = os.getpid()
        self._tag = f"{owner}-{processes.start_time(owner)}"
        self.folder = Path(
            tempfile.mkdtemp(prefix=f"warifu-lab-{self._tag}-", dir=temporary_folder())
        )
        # nginx's workers may run as another user.
        self.folder.chmod(0o755)
        self._namespaces: list[str] = []

    def namespace(self, end: str, settings: dict[str, str] | None = None) -> str:
        """Makes a namespace with its loopback up and `settings` (sysctl) in force; its name.

        Raises LabUnavailable without the right to.
        """
        name = f"warifu-{self._tag}-{end}"
        # On the list first: a signal may come at any moment, and deleting what is not there is
        # harmless.
        self._namespaces.append(name)
        done = _ip("netns", "add", name)
        if done.returncode != 0:
            raise LabUnavailable(
                f"cannot create a network namespace ({done.stderr.strip()}): run as root, "
                "in a container with --cap-add NET_ADMIN --cap-add SYS_ADMIN"
            )
        _checked("-n", name, "link", "set", "dev", "lo", "up")
        if settings:
            _set_sysctls(name, settings)
        return name

    def remove_namespace(self, name: str) -> None:
        """Kills what runs in the namespace and deletes it."""
        _delete_namespace(name)
        self._namespaces.remove(name)

    def close(self) -> None:
        """Removes the namespaces and the folder. May be called twice."""
        for name in reversed(self._namespaces):
            _delete_namespace(name)
        self._namespaces.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Workplace:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()


def leftovers() -> list[Leftover]:
    """What labs that no longer live have left on this machine."""
    found = [
        Leftover("namespace", path.name)
        for path in _entries(NAMESPACES)
        if _is_orphan(_NAMESPACE.fullmatch(path.name))
    ]
    found += [
        Leftover("folder", str(path))
        for path in _entries(temporary_folder())
        if _is_orphan(_FOLDER.fullmatch(path.name)) and path.lstat().st_uid == os.geteuid()
    ]
    return found


def sweep() -> list[Leftover]:
    """Removes the leftovers, with the processes in their namespaces; says what it removed."""
    found = leftovers()
    for item in found:
        if item.kind == "namespace":
            _delete_namespace(item.name)
        else:
            shutil.rmtree(item.name, ignore_errors=True)
    return found


def sysctls(namespace: str, names: list[str]) -> dict[str, str]:
    """The values of `net.ipv4.NAME` in a namespace, of those that this kernel has."""
    done = _run(
        str(tools.find("ip")), "netns", "exec", namespace,
        str(tools.find("sysctl")), "-e", *(f"net.ipv4.{name}" for name in names),
    )  # fmt: skip
    pairs = (line.partition(" = ") for line in done.stdout.splitlines())
    return {key.removeprefix("net.ipv4."): " ".join(value.split()) for key, _, value in pairs}


def retransmitted(namespace: str) -> int:
    """TCP segments that the namespace has sent again (RFC 4022, tcpRetransSegs)."""
    done = _run(str(tools.find("ip")), "netns", "exec", namespace, "cat", "/proc/net/snmp")
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("Tcp:")]
    return int(dict(zip(*rows, strict=True))["RetransSegs"]) if len(rows) == 2 else 0


def _set_sysctls(namespace: str, settings: dict[str, str]) -> None:
    words = [f"net.ipv4.{name}={value}" for name, value in settings.items()]
    # -e passes over names that this kernel lacks; reading them back tells which.
    done = _run(
        str(tools.find("ip")), "netns", "exec", namespace,
        str(tools.find("sysctl")), "-q", "-e", "-w", *words,
    )  # fmt: skip
    if done.returncode != 0:
        raise LabError(f"TCP settings of namespace {namespace}: {done.stderr.strip()}")


def _delete_namespace(name: str) -> None:
    pids = [int(word) for word in _ip("netns", "pids", name).stdout.split()]
    processes.kill_and_wait(pids)
    _ip("netns", "del", name)


def _is_orphan(found: re.Match[str] | None) -> bool:
    if found is None:
        return False
    pid, started = int(found.group(1)), int(found.group(2))
    return processes.start_time(pid) != started


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _checked(*arguments: str) -> None:
    done = _ip(*arguments)
    if done.returncode != 0:
        raise LabError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def _ip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return _run(str(tools.find("ip")), *arguments)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    # A group of its own, so that a Ctrl-C in the terminal does not cut it in half.
    return subprocess.run(
        command, capture_output=True, text=True, check=False, start_new_session=True
    )
