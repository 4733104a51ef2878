# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Puts a wheel together from what cargo has built: make_wheel.py BUILT OUT.

maturin builds one crate, and the wheel holds the programs and libraries of the whole workspace; so
that nothing is compiled twice, maturin writes the metadata alone. In the package are `bin`, `lib`
and `profiles`, where `warifu.tools` and `warifu.study` look for them. With the licences of the
project come those of the crates that are linked in. Beside the wheel lies `requirements.lock`: what
it requires, in the locked versions, with their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from importlib.metadata import requires
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from warifu import tools  # noqa: E402 - of this checkout

#: Built against the middleware of one machine, in a checkout.
NOT_IN_WHEELS = {"cyclonedds-probe", "fastdds-probe"}
#: Names of files that hold a crate's licence.
LICENCES = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "UNLICENSE*")
EXECUTABLE, PLAIN = 0o755, 0o644
#: The earliest time that a zip file can say.
EARLIEST_S = 315_532_800

Files = dict[str, tuple[bytes, int]]


def main() -> None:
    """Writes the wheel and says where it is."""
    built, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="warifu-wheel-") as name:
        folder = Path(name)
        info = metadata(folder)
        files = {**package(), **binaries(built, folder), **described(info)}
        files |= {
            f"{info.name}/licenses/{path}": (text, PLAIN) for path, text in third_parties().items()
        }
        tag = next(
            line.removeprefix("Tag: ")
            for line in (info / "WHEEL").read_text().splitlines()
            if line.startswith("Tag: ")
        )
        out.mkdir(parents=True, exist_ok=True)
        wheel = out / f"{info.name.removesuffix('.dist-info')}-{tag}.whl"
        write(wheel, files, f"{info.name}/RECORD")
    (out / "requirements.lock").write_text(requirements(), encoding="utf-8")
    print(f"wheel: {wheel}, {wheel.stat().st_size / 1e6:.0f} MB", file=sys.stderr)


def metadata(folder: Path) -> Path:
    """The folder of metadata, as maturin writes it from pyproject.toml."""
    python = Path(sys.executable)
    subprocess.run(
        [python.with_name("maturin"), "pep517", "write-dist-info", "--quiet", "--locked",
         "--metadata-directory", folder, "--interpreter", python],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (info,) = folder.glob("*.dist-info")
    return info


def described(info: Path) -> Files:
    """The files of the metadata."""
    paths = (path for path in info.rglob("*") if path.is_file())
    return {str(path.relative_to(info.parent)): (path.read_bytes(), PLAIN) for path in paths}


def package() -> Files:
    """Python's sources and the profiles: what is, or may be, under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "python/warifu",
         "profiles"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    files: Files = {}
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            inside = f"warifu/{name}" if name.startswith("profiles/") else name.partition("/")[2]
            files[inside] = ((ROOT / name).read_bytes(), PLAIN)
    return files


def binaries(built: Path, folder: Path) -> Files:
    """The compiled core, programs and libraries, without what only a debugger reads."""
    files = {"warifu/_core.abi3.so": (stripped(built / "lib_core.so", folder), EXECUTABLE)}
    for tool in tools.TOOLS:
        if tool.own and tool.name not in NOT_IN_WHEELS:
            where = "lib" if tool.library else "bin"
            mode = PLAIN if tool.library else EXECUTABLE
            files[f"warifu/{where}/{tool.name}"] = (stripped(built / tool.name, folder), mode)
    return files


def stripped(file: Path, folder: Path) -> bytes:
    """A program or library without its lines and types; functions keep their names."""
    to = folder / file.name
    shutil.copyfile(file, to)
    subprocess.run(["strip", "--strip-debug", to], check=True)
    content = to.read_bytes()
    to.unlink()
    return content


def requirements() -> str:
    """What the wheel requires, and what that requires, as the project's lock has it."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = {
        normal(entry.partition("==")[0]): entry
        for entry in re.findall(r"^\S+==[^\n]*(?:\n +--hash[^\n]*)+", lock, re.MULTILINE)
    }
    wanted: set[str] = set()
    left = ["warifu"]
    while left:
        for requirement in requires(left.pop()) or []:
            name = normal(re.split(r"[^\w.-]", requirement)[0])
            if "extra ==" not in requirement and name in entries and name not in wanted:
                wanted.add(name)
                left.append(name)
    return "".join(f"{entries[name]}\n" for name in sorted(wanted))


def normal(name: str) -> str:
    """A distribution's name as it is compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def third_parties() -> dict[str, bytes]:
    """The licences of every crate that may be linked in, and a list of them."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline"]
    host = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    triple = next(line.split()[1] for line in host.splitlines() if line.startswith("host: "))
    text = subprocess.run(
        [*command, "--filter-platform", triple], cwd=ROOT, check=True, capture_output=True
    ).stdout
    graph: dict[str, Any] = json.loads(text)
    about = {one["id"]: one for one in graph["packages"]}
    nodes = {one["id"]: one for one in graph["resolve"]["nodes"]}
    wanted, left = set(), list(graph["workspace_members"])
    while left:
        one = left.pop()
        if one not in wanted:
            wanted.add(one)
            # Not what tests alone use.
            left += [
                edge["pkg"]
                for edge in nodes[one]["deps"]
                if any(kind["kind"] != "dev" for kind in edge["dep_kinds"])
            ]
    found: dict[str, bytes] = {}
    lines = ["Crates that Warifu's programs and libraries are linked with, and their licences.\n"]
    for crate in sorted((about[one] for one in wanted), key=lambda one: str(one["name"])):
        if crate["source"] is None:
            continue
        name = f"{crate['name']}-{crate['version']}"
        lines.append(f"{name}: {crate['license'] or 'see its files'}\n")
        home = Path(crate["manifest_path"]).parent
        for path in sorted({path for pattern in LICENCES for path in home.glob(pattern)}):
            if path.is_file():
                found[f"third-party/{name}/{path.name}"] = path.read_bytes()
    found["third-party/LIST"] = "".join(lines).encode()
    return found


def write(wheel: Path, files: Files, record: str) -> None:
    """The archive, the same for the same files; its list of hashes comes last (PEP 427)."""
    lines = []
    for name, (content, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    lines.append(f"{record},,\n")
    listed = [*sorted(files.items()), (record, ("".join(lines).encode(), PLAIN))]
    at = time.gmtime(max(EARLIEST_S, int(os.environ.get("SOURCE_DATE_EPOCH", "0"))))[:6]
    partial = wheel.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w") as archive:
        for name, (content, mode) in listed:
            entry = zipfile.ZipInfo(name, at)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    partial.replace(wheel)


if __name__ == "__main__":
    main()
