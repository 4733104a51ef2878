# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A Dockerfile's steps, run in root folders that debootstrap makes, without a container engine.

An image of Debian is what debootstrap gives; one of Rust is the same with this machine's toolchain.
Layers, isolation and limits are the engine's, and nothing here says anything about them. How the
machine gets at packages (sources, proxies, certificates) is copied into the folders.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

TIMEOUT_S = 3 * 3600
#: Where a machine keeps how it gets at packages.
_OF_MACHINE = (
    "etc/apt/sources.list", "etc/apt/sources.list.d", "etc/apt/apt.conf", "etc/apt/apt.conf.d",
    "etc/apt/auth.conf.d", "etc/apt/preferences.d", "etc/pip.conf", "etc/resolv.conf", "etc/hosts",
    "etc/ssl/certs", "usr/local/share/ca-certificates", "usr/share/keyrings",
)  # fmt: skip
_VARIABLES = re.compile(r".*(proxy|CERT|CA_BUNDLE|CAINFO|CA_CERTS).*|PIP_.*|CARGO_HTTP.*", re.I)
#: Packages that have to be there before others can be fetched over TLS.
_INCLUDE = "ca-certificates"


@dataclass(frozen=True)
class Step:
    """An instruction: its name in capitals, and the rest of its line."""

    name: str
    rest: str


@dataclass
class Stage:
    """What follows a FROM."""

    base: str
    name: str
    steps: list[Step] = field(default_factory=list)


def stages(text: str) -> list[Stage]:
    """The stages of a Dockerfile. Raises ValueError for an instruction that is not known here."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found: list[Stage] = []
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            base, _, alias = rest.partition(" AS ")
            found.append(Stage(base, alias))
        elif name in {"RUN", "COPY", "ENV", "ARG", "WORKDIR", "ENTRYPOINT", "CMD"}:
            found[-1].steps.append(Step(name, rest.strip()))
        else:
            raise ValueError(f"{name}: support/images.py does not know this instruction")
    return found


class Root:
    """A root folder with what a Dockerfile keeps beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = "/"
        self.entry: list[str] = []
        self.command: list[str] = []
        self.variables = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"
        }  # fmt: skip

    def run(self, command: str, extra: Mapping[str, str] | None = None, folder: str = "") -> str:
        """What a shell's command prints, which must succeed; mounts end with it."""
        of_machine = {name: one for name, one in os.environ.items() if _VARIABLES.fullmatch(name)}
        variables = of_machine | self.variables | dict(extra or {})
        inside = f"cd {shlex.quote(folder or self.folder)} && {command}"
        root = shlex.quote(str(self.path))
        script = (
            f"mount --rbind /dev {root}/dev && mount -t proc proc {root}/proc && "
            f"exec chroot {root} /bin/sh -c {shlex.quote(inside)}"
        )
        done = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
            env=variables | {"PATH": f"{variables['PATH']}:/usr/sbin:/sbin"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=TIMEOUT_S,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout[-8000:]}"
        return done.stdout

    def start(self, *arguments: str) -> str:
        """What the image says that is started with arguments."""
        return self.run(shlex.join([*self.entry, *(arguments or self.command)]))

    def build(
        self, stage: Stage, context: Path, others: Mapping[str, Root], given: Mapping[str, str]
    ) -> None:
        """Runs a stage's steps; ``given`` are build arguments, and variables for its commands."""
        arguments: dict[str, str] = {}
        for step in stage.steps:
            match step.name:
                case "ENV" | "ARG":
                    for pair in shlex.split(step.rest):
                        name, _, value = pair.partition("=")
                        kept = self.variables if step.name == "ENV" else arguments
                        kept[name] = given.get(name, value) if step.name == "ARG" else value
                case "WORKDIR":
                    self.folder = step.rest
                    (self.path / step.rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
                case "COPY":
                    self._copy(step.rest, context, others)
                case "RUN":
                    self.run(step.rest, dict(given) | arguments)
                case "ENTRYPOINT":
                    self.entry = json.loads(step.rest)
                case "CMD":
                    self.command = json.loads(step.rest)

    def _copy(self, rest: str, context: Path, others: Mapping[str, Root]) -> None:
        words = shlex.split(rest)
        where, ignored = context, _ignored(context)
        if words[0].startswith("--from="):
            where, ignored = others[words.pop(0).removeprefix("--from=")].path, []
        *sources, target = words
        to = self.path / str(Path(self.folder) / target).lstrip("/")
        for source in sources:
            copy(where / source.lstrip("/"), to, where, ignored)


def copy(source: Path, to: Path, root: Path, ignored: Iterable[str]) -> None:
    """A folder's content into ``to``, without what .dockerignore names below ``root``."""

    def left_out(folder: str, names: list[str]) -> set[str]:
        paths = {name: str((Path(folder) / name).relative_to(root)) for name in names}
        return {
            name
            for name, path in paths.items()
            if any(_matches(path, name, pattern) for pattern in ignored)
        }

    shutil.copytree(source, to, symlinks=True, ignore=left_out, dirs_exist_ok=True)


def _matches(path: str, name: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch.fnmatch(name, pattern.removeprefix("**/"))
    # An asterisk of .dockerignore ends at a slash.
    return path.count("/") == pattern.count("/") and fnmatch.fnmatch(path, pattern)


def _ignored(context: Path) -> list[str]:
    lines = (context / ".dockerignore").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def debian(path: Path, suite: str, toolchain: bool) -> Root:
    """Debian's root folder; with ``toolchain``, this machine's Rust in it."""
    machine = Path("/")
    mirror = _mirror(suite)
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={_INCLUDE}", suite, path, mirror],
        check=True, timeout=1800, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    (path / "etc/apt/sources.list").unlink(missing_ok=True)
    for name in _OF_MACHINE:
        source = machine / name
        if source.is_dir():
            # Links in it would be followed to this machine's own files.
            shutil.rmtree(path / name, ignore_errors=True)
            shutil.copytree(source, path / name, symlinks=False, dirs_exist_ok=True,
                            ignore_dangling_symlinks=True)  # fmt: skip
        elif source.is_file():
            (path / name).unlink(missing_ok=True)
            shutil.copyfile(source, path / name)
    root = Root(path)
    if toolchain:
        _rust(root)
    return root


def _rust(root: Root) -> None:
    """As the image of Rust has it: /usr/local/rustup and /usr/local/cargo."""
    sysroot = subprocess.run(
        ["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True
    ).stdout.strip()
    shutil.copytree(sysroot, root.path / "usr/local/rust", symlinks=True)
    config = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "config.toml"
    (root.path / "usr/local/cargo").mkdir()
    if config.is_file():
        shutil.copyfile(config, root.path / "usr/local/cargo/config.toml")
    root.variables["CARGO_HOME"] = "/usr/local/cargo"
    root.variables["PATH"] = f"/usr/local/rust/bin:{root.variables['PATH']}"


def _mirror(suite: str) -> str:
    """Where this machine gets a suite's packages from."""
    printed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for line in printed.splitlines():
        release, _, uri = line.partition(" ")
        if release == suite:
            return uri.rstrip("/")
    raise AssertionError(f"apt has no source of {suite}")
