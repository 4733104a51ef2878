# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The edges of ARCHITECTURE.md: who may know whom, and who may touch the world outside."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import ROOT

CRATES = (ROOT / "crates", ROOT / "dds")
PACKAGE = ROOT / "python" / "warifu"

# crate -> the crates of ours that it may depend on.
MAY_KNOW = {
    "warifu-model": set(),
    "warifu-trace": {"warifu-model"},
    "warifu-os": {"warifu-model"},
    "warifu-results": {"warifu-model"},
    "warifu-sim": {"warifu-model", "warifu-trace"},
    "warifu-runner": {"warifu-model", "warifu-results", "warifu-sim"},
    "warifu-card": {"warifu-model"},
    "warifu-iotsafe-client": {"warifu-os", "warifu-card"},
    "warifu-agent-protocol": {"warifu-os", "warifu-card", "warifu-iotsafe-client"},
    "warifu-pkcs11": {
        "warifu-os",
        "warifu-card",
        "warifu-iotsafe-client",
        "warifu-agent-protocol",
    },
    "warifu-agent": {
        "warifu-model",
        "warifu-os",
        "warifu-card",
        "warifu-iotsafe-client",
        "warifu-agent-protocol",
    },
    "warifu-card-server": {"warifu-model", "warifu-os", "warifu-card"},
    "warifu-link": {"warifu-model", "warifu-os"},
    "warifu-m3": set(),
    "warifu-pkcs11-client": {"warifu-os"},
    # The lab meets iotsafe in two places: its client signs with the key in a PKCS#11 token, and the
    # bench runs our module over a card on the virtual clock.
    "warifu-tls-client": {
        "warifu-model",
        "warifu-os",
        "warifu-open-loop",
        "warifu-pkcs11-client",
    },
    "warifu-open-loop": {"warifu-os"},
    "warifu-coap-client": {"warifu-model", "warifu-os", "warifu-open-loop"},
    "warifu-calibrate-bench": {
        "warifu-model",
        "warifu-os",
        "warifu-tls-client",
        "warifu-card",
        "warifu-iotsafe-client",
        "warifu-pkcs11",
        "warifu-pkcs11-client",
        # Times its ciphers.
        "warifu-dds-crypto",
    },
    # Loaded by Cyclone DDS.
    "warifu-dds-crypto": set(),
    # Preloaded by programs, and by nothing of ours.
    "warifu-evp-probe": {"warifu-os"},
    "warifu-psk-preload": set(),
    "warifu-py": {
        "warifu-iotsafe-client",
        "warifu-model",
        "warifu-os",
        "warifu-trace",
        "warifu-results",
        "warifu-sim",
        "warifu-runner",
        "warifu-m3",
    },
}
# Tests alone may hold a crate against real software.
TESTS_MAY_KNOW = {
    "warifu-agent": {"warifu-pkcs11"},
    "warifu-trace": {"warifu-tls-client"},
    "warifu-sim": {"warifu-link", "warifu-tls-client"},
}

# room of the Python package -> the rooms that it may import. Room '' is the package's own file, of
# which the command line uses an exception.
PYTHON_MAY_IMPORT = {
    "": {"_core", "answer", "files", "lock", "prediction", "question", "results", "study"},
    "files": set(),
    "identity": {"_core"},
    "printable": set(),
    "compare": {"compare", "results", "files", "printable"},
    # What a study asked, answered: words and a table, from the same figures as the report's.
    "answer": {"answer", "compare", "printable", "report", "results"},
    "report": {"report", "answer", "compare", "results", "files", "printable"},
    "results": {"results", "files", "printable", "typed_json", "_core"},
    "m3": {"m3", "results", "files", "printable", "_core"},
    "reproduce": {"reproduce", "dds", "m3", "report"},
    "entropy": {"entropy"},
    "case": {"typed_json"},
    "typed_json": {"printable"},
    "lab": {
        "lab",
        "case",
        "dds",
        "files",
        "identity",
        "printable",
        "typed_json",
        "tools",
        "results",
        "_core",
    },
    "calibrate": {
        "files",
        "identity",
        "lab",
        "calibrate",
        "case",
        "m3",
        "tools",
        "results",
        "_core",
    },
    "dds": {"dds", "files", "m3", "results", "tools"},
    "devices": {"devices", "_core"},
    "study": {"files", "printable", "_core"},
    "tools": set(),
    "lock": set(),
    "provenance": {"_core", "identity", "lab", "study"},
    "question": {
        "_core",
        "answer",
        "files",
        "lock",
        "prediction",
        "printable",
        "report",
        "results",
        "study",
    },
    "prediction": {"_core", "files", "provenance", "study"},
    "replay": {"_core", "provenance", "results", "study"},
    "doctor": {"_core", "doctor", "calibrate", "identity", "lab", "tools"},
    # Everything meets here, and nobody knows it.
    "cli": {
        "cli",
        "answer",
        "calibrate",
        "compare",
        "dds",
        "devices",
        "doctor",
        "entropy",
        "files",
        "identity",
        "lab",
        "lock",
        "m3",
        "prediction",
        "printable",
        "provenance",
        "replay",
        "report",
        "reproduce",
        "results",
        "study",
        "tools",
        "_core",
        "WarifuError",
    },
}

# crate -> what its sources must not name. Results writes files; the others do no I/O at all.
OUTSIDE_WORLD = (
    r"\bInstant\b",
    r"\bSystemTime\b",
    r"\b(?:TcpStream|TcpListener|UdpSocket|UnixStream|ToSocketAddrs)\b",
    r"\bstd::process\b",
    r"\bstd::os\b",
    r"\bstd::env\b",
    r"\bthread_rng\b",
    r"\brand::rng\b",
    r"\bOsRng\b",
    r"\bSysRng\b",
    r"\bfrom_os_rng\b",
    r"\bfrom_entropy\b",
    r"\bgetrandom\b",
    r"\bRandomState\b",
    r"\blibc::",
    r"\brustix::",
)
FILES = (r"\bstd::fs\b", r"\bFile::open\b", r"\bFile::create\b")
MUST_NOT_NAME = {
    "warifu-model": OUTSIDE_WORLD + FILES,
    "warifu-trace": OUTSIDE_WORLD + FILES,
    "warifu-sim": OUTSIDE_WORLD + FILES,
    "warifu-runner": OUTSIDE_WORLD + FILES,
    "warifu-card": OUTSIDE_WORLD + FILES,
    "warifu-m3": OUTSIDE_WORLD + FILES,
    "warifu-results": OUTSIDE_WORLD,
    "warifu-py": OUTSIDE_WORLD + FILES,
}

# The rooms that may touch sockets, processes, the clock and system randomness.
WORLDLY_ROOMS = {"lab", "calibrate", "cli", "dds", "doctor", "provenance", "tools"}
WORLDLY_MODULES = {
    "asyncio",
    "http",
    "multiprocessing",
    "random",
    "secrets",
    "selectors",
    "signal",
    "socket",
    "subprocess",
    "time",
    "urllib",
    "uuid",
}
WORLDLY_CALLS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "os.urandom"}


def folders() -> dict[str, Path]:
    """The folder of each crate, by its package's name."""
    return {
        tomllib.loads(path.read_text())["package"]["name"]: path.parent
        for room in CRATES
        for path in sorted(room.rglob("Cargo.toml"))
    }


def manifest(crate: str) -> dict[str, object]:
    """The Cargo.toml of a crate."""
    return tomllib.loads((folders()[crate] / "Cargo.toml").read_text())


def ours(table: object) -> set[str]:
    """The crates of ours in a table of dependencies."""
    return (
        {name for name in table if name.startswith("warifu-")} if isinstance(table, dict) else set()
    )


def code_of(rust: str) -> str:
    """Rust source without comments and strings; lines stay where they are."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|r(?P<hashes>#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"', re.DOTALL
    )
    return token.sub(lambda match: "\n" * match.group().count("\n"), rust)


def python_sources() -> Iterator[tuple[str, Path]]:
    """Each Python source of the package with its room; the package's own file is room ''."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        yield ("" if parts[0] == "__init__" else parts[0]), path


def imports_of(tree: ast.AST, package: list[str]) -> set[str]:
    """Absolute dotted names of everything imported; `package` is where relative ones start."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


def package_of(path: Path) -> list[str]:
    """The package that a source file's relative imports start from."""
    return ["warifu", *path.relative_to(PACKAGE).parent.parts]


def text_files() -> Iterator[tuple[str, str]]:
    """Every text file of the repository, by its path from the root, with its text."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if not path.is_file():
            continue  # removed, not yet committed
        try:
            yield name, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # binary


def test_every_crate_has_its_edges_written_down() -> None:
    assert set(folders()) == set(MAY_KNOW)


@pytest.mark.parametrize("crate", sorted(MAY_KNOW))
def test_a_crate_knows_only_whom_it_may(crate: str) -> None:
    toml = manifest(crate)
    known = ours(toml.get("dependencies")) | ours(toml.get("build-dependencies"))
    assert known <= MAY_KNOW[crate]
    in_tests = ours(toml.get("dev-dependencies"))
    assert in_tests <= MAY_KNOW[crate] | TESTS_MAY_KNOW.get(crate, set())


@pytest.mark.parametrize("crate", sorted(MUST_NOT_NAME))
def test_time_and_randomness_are_arguments(crate: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{code[: match.start()].count(chr(10)) + 1}: {match.group()}"
        for path in sorted((folders()[crate] / "src").rglob("*.rs"))
        for code in [code_of(path.read_text())]
        for pattern in MUST_NOT_NAME[crate]
        for match in re.finditer(pattern, code)
    ]
    assert not found, "\n".join(found)


def test_the_scan_of_rust_sees_code_and_not_prose() -> None:
    rust = 'use std::time::Instant; // no SystemTime\nlet a = "TcpStream \\" x"; /* OsRng */'
    rust += 'b(r#"""#);'
    code = code_of(rust)
    assert "Instant" in code
    assert not re.search("SystemTime|TcpStream|OsRng", code)
    assert code.endswith("b();")


def test_every_python_room_has_its_edges_written_down() -> None:
    assert {room for room, _ in python_sources()} == set(PYTHON_MAY_IMPORT)


def test_python_rooms_import_only_what_they_may() -> None:
    found = []
    for room, path in python_sources():
        for name in imports_of(ast.parse(path.read_text()), package_of(path)):
            parts = name.split(".")
            if parts[0] == "warifu" and (len(parts) < 2 or parts[1] not in PYTHON_MAY_IMPORT[room]):
                found.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not found, "\n".join(found)


def test_programs_of_bench_and_scripts_import_what_there_is() -> None:
    """They are started by hand, or by tests that take minutes."""
    missing = []
    for folder in ("bench", "scripts"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
                    continue
                if node.module.split(".")[0] != "warifu":
                    continue
                module = importlib.import_module(node.module)
                missing += [
                    f"{file.relative_to(ROOT)}: {node.module}.{one.name}"
                    for one in node.names
                    if not hasattr(module, one.name)
                    and importlib.util.find_spec(f"{node.module}.{one.name}") is None
                ]
    assert missing == []


def test_temporary_files_say_where_they_are() -> None:
    """What TMPDIR names may be somebody else's, and this process root's (`files.temporary_folder`);
    what is to replace a file lies beside it."""
    found = []
    for _, path in python_sources():
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = ast.unparse(call.func)
            makes = re.fullmatch(r"(tempfile\.)?(mk[ds]?temp|\w*Temporary(Directory|File))", name)
            if makes and "dir" not in {keyword.arg for keyword in call.keywords}:
                found.append(f"{path.relative_to(ROOT)}:{call.lineno}: {name} without dir=")
    assert not found, "\n".join(found)


def test_only_worldly_python_rooms_touch_the_world() -> None:
    found = []
    for room, path in python_sources():
        if room in WORLDLY_ROOMS:
            continue
        tree = ast.parse(path.read_text())
        for name in imports_of(tree, package_of(path)):
            if name.split(".")[0] in WORLDLY_MODULES:
                found.append(f"{path.relative_to(ROOT)} imports {name}")
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = ".".join(ast.unparse(node.func).split(".")[-2:])
                unseeded = called.endswith("default_rng") and not (node.args or node.keywords)
                legacy = re.fullmatch(r"random\.(rand|randn|randint|choice|seed|random)", called)
                if called in WORLDLY_CALLS or unseeded or legacy:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} calls {called}")
    assert not found, "\n".join(found)


def test_relative_imports_are_resolved() -> None:
    tree = ast.parse("from . import a\nfrom ..lab import b\nfrom .c import d\nimport time")
    names = imports_of(tree, ["warifu", "report"])
    assert names == {"warifu.report.a", "warifu.lab.b", "warifu.report.c.d", "time"}


def test_every_source_file_names_its_licence() -> None:
    suffixes = {".rs", ".py", ".pyi", ".toml", ".sh", ".c", ".h", ".cff", ".js", ".css"}
    bare = {"Makefile"}
    missing = [
        name
        for name, text in text_files()
        if Path(name).suffix in suffixes or Path(name).name in bare or text.startswith("#!")
        if not name.startswith("fuzz/seeds/")  # bytes for a parser, whatever their suffix
        if "SPDX-License-Identifier: Apache-2.0 OR MIT" not in "\n".join(text.splitlines()[:3])
    ]
    assert not missing, "\n".join(missing)


# A folder of one machine from its root on, or the host of a package registry.
FOLDERS = "|".join(["work", "root", "tmp", "home"])
HOSTS = "|".join(
    [
        r"pythonhosted\.org",
        r"pypi\.org",
        r"index\.crates\.io",
        r"deb\.debian\.org",
        "arti" + "factory",
    ]
)
ONE_MACHINE = re.compile(rf"(?<![\w.\-~}}])/(?:{FOLDERS})/\w|{HOSTS}")


def test_a_folder_of_one_machine_is_recognised() -> None:
    assert ONE_MACHINE.search("see /" + "work/main")
    assert ONE_MACHINE.search("https://files.pythonhosted" + ".org/x")
    assert not ONE_MACHINE.search("target/work/a ~/work/x results/tmp/a")


def test_nothing_names_the_machine_it_was_made_on() -> None:
    found = [
        f"{name}: {match.group()}"
        for name, text in text_files()
        for match in ONE_MACHINE.finditer(text)
        if name != "tests/unit/test_architecture.py"
    ]
    assert not found, "\n".join(found)


def test_locked_crates_come_from_the_public_index_or_from_here() -> None:
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    sources = {package.get("source") for package in lock["package"]}
    assert sources == {None, "registry+https://github.com/rust-lang/crates.io-index"}


def test_no_test_is_switched_off_and_nothing_is_left_to_do() -> None:
    words = ["#[ig" + "nore", "pytest.sk" + "ip", "mark.sk" + "ip", "TO" + "DO", "FIX" + "ME"]
    words += ["to" + "do!(", "unimplem" + "ented!(", "importors" + "kip", "mark.xf" + "ail"]
    found = [
        f"{name}: {word}"
        for name, text in text_files()
        if Path(name).suffix in {".rs", ".py", ".pyi", ".toml"} or name.startswith("scripts/")
        for word in words
        if word in text
        # Only for what a machine or a user lacks, and in words that a report can show.
        if (name, word) != ("tests/support/needs.py", "mark.sk" + "ip")
    ]
    assert not found, "\n".join(found)
