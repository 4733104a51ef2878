# SPDX-License-Identifier: Apache-2.0 OR MIT
"""munacl's Makefile: compilers, profiles, and what `make bench` hands on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import needs
from support.munacl_builds import listing
from support.paths import ROOT
from warifu import m3
from warifu.cli import munacl_peers
from warifu.reproduce import munacl
from warifu.reproduce import munacl_checks as checks

MUNACL = ROOT / "firmware" / "munacl"
#: A folder as a shell and make would read it, if they did.
FOLDER = "a b $(shell touch pwned) $(touch pwned) `touch pwned`;touch pwned #"
#: Functions of Monocypher that take time, without its work.
MONOCYPHER = """\
void crypto_x25519(uint8_t *out, const uint8_t *key, const uint8_t *point)
{ for (int i = 0; i < 32; i++) out[i] = key[i] ^ point[i]; }
void crypto_x25519_public_key(uint8_t *out, const uint8_t *key) { out[0] = key[0]; }
void crypto_eddsa_key_pair(uint8_t *key, uint8_t *public, uint8_t *seed)
{ key[0] = public[0] = seed[0]; }
void crypto_eddsa_sign(uint8_t *out, const uint8_t *key, const uint8_t *text, size_t n)
{ (void)n; out[0] = key[0] ^ text[0]; }
int crypto_eddsa_check(const uint8_t *a, const uint8_t *key, const uint8_t *text, size_t n)
{ (void)a, (void)key, (void)text, (void)n; return 0; }
void crypto_poly1305(uint8_t *out, const uint8_t *text, size_t n, const uint8_t *key)
{ (void)n; out[0] = text[0] ^ key[0]; }
void crypto_aead_lock(uint8_t *out, uint8_t *mac, const uint8_t *key, const uint8_t *nonce, \
const uint8_t *ad, size_t n, const uint8_t *text, size_t m)
{ (void)key, (void)nonce, (void)ad, (void)n, (void)text, (void)m; out[0] = mac[0]; }
int crypto_aead_unlock(uint8_t *out, const uint8_t *mac, const uint8_t *key, const uint8_t *nonce, \
const uint8_t *ad, size_t n, const uint8_t *text, size_t m)
{ (void)key, (void)nonce, (void)ad, (void)n, (void)text, (void)m; out[0] = mac[0]; return 0; }
int crypto_verify16(const uint8_t *a, const uint8_t *b) { return a[0] ^ b[0]; }
int crypto_verify32(const uint8_t *a, const uint8_t *b) { return a[0] ^ b[0]; }
"""


def make(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "-C", str(folder), *words],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.fixture
def firmware(tmp_path: Path) -> Path:
    """The library's sources where a test may build them, in a folder whose name has a space."""
    folder = tmp_path / "a clone" / "firmware" / "munacl"
    shutil.copytree(MUNACL, folder, ignore=shutil.ignore_patterns("build"))
    return folder


def program_on_path(folder: Path, name: str, script: str) -> str:
    """The search path with a program."""
    folder.mkdir()
    program = folder / name
    program.write_text(script)
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize("how", ["environment", "command line"])
def test_bench_hands_on_names_of_folders_as_they_are(
    firmware: Path, tmp_path: Path, how: str
) -> None:
    script = f'#!/bin/sh\nprintf "%s\\n" "$MUNACL_PEERS" "$*" >> "{tmp_path}/called"\n'
    path = program_on_path(tmp_path / "bin", "warifu", script)
    if how == "environment":
        done = make(firmware, "-j2", "bench", PATH=path, MUNACL_PEERS=FOLDER)
    else:
        done = make(firmware, "-j2", "bench", f"MUNACL_PEERS={FOLDER}", PATH=path)
    assert done.returncode == 0, done.stderr
    peers, reproduced, again, calibrated = (tmp_path / "called").read_text().splitlines()
    assert peers == again == FOLDER
    assert reproduced == "reproduce munacl --firmware . --part table3"
    assert calibrated == (
        "calibrate m3 build/fast/primitives-lpc1768.elf --chip lpc1768 --mhz 96 "
        "--wait-states flash=4 --out ../../profiles/devices/lpc1768-munacl.toml"
    )
    assert list(tmp_path.rglob("pwned")) == []


def test_bench_has_libraries_of_folders_with_any_name(firmware: Path, tmp_path: Path) -> None:
    peer = tmp_path / FOLDER / "src"
    peer.mkdir(parents=True)
    head = "#include <stddef.h>\n#include <stdint.h>\n"
    (peer / "monocypher.c").write_text('#include "monocypher.h"\n' + MONOCYPHER)
    declarations = [line.partition("{")[0].rstrip(" ;") for line in MONOCYPHER.splitlines()]
    lines = [f"{line};\n" for line in declarations if line.startswith(("void", "int"))]
    (peer / "monocypher.h").write_text(head + "".join(lines))
    script = f"#!{sys.executable}\nimport sys\nfrom warifu.cli import main\nsys.exit(main())\n"
    path = program_on_path(tmp_path / "bin", "warifu", script)
    (firmware.parents[1] / "profiles" / "devices").mkdir(parents=True)
    # As under another make, whose settings are its own: -w says which folder it enters.
    done = make(firmware, "-w", "bench", PATH=path, MUNACL_PEERS=str(tmp_path / FOLDER))
    assert done.returncode == 0, done.stderr
    head_line = next(line for line in done.stdout.splitlines() if line.startswith("call "))
    assert head_line.split()[-1] == "monocypher"
    assert "Monocypher, from MUNACL_PEERS" in done.stdout
    assert list(tmp_path.rglob("pwned")) == []
    # Another time without them.
    done = make(firmware, "-s", "bench", PATH=path, MUNACL_PEERS="")
    assert (done.returncode, "onocypher" in done.stdout) == (0, False)


@pytest.mark.parametrize(
    ("suffix", "program", "writes"), [("y", "yacc", "touch y.tab.c"), ("l", "lex", "")]
)
def test_peers_are_compiled_and_never_made_of_what_lies_beside_them(
    tmp_path: Path, suffix: str, program: str, writes: str
) -> None:
    peer, out = tmp_path / "peer", tmp_path / "build"
    peer.mkdir()
    (peer / "monocypher.c").write_text("int monocypher;\n")
    os.utime(peer / "monocypher.c", (1, 1))
    # Newer, as make's built-in rule wants it, which runs the program and takes its output.
    (peer / f"monocypher.{suffix}").write_text("%%\n")
    script = f'#!/bin/sh\ntouch "{tmp_path}/ran"\n{writes}\n'
    path = program_on_path(tmp_path / "bin", program, script)
    munacl_peers.link(munacl_peers.find(str(peer)), out)
    built = out / "peers" / "monocypher" / "monocypher.o"
    done = make(MUNACL, f"BUILD={out}", str(built), PATH=path)
    assert (done.returncode, built.is_file()) == (0, True), done.stderr
    assert (peer / "monocypher.c").read_text() == "int monocypher;\n"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["PROFILE=bogus"], "PROFILE is bogus: expected fast or small"),
        (["PROFILE=fast small"], "PROFILE is fast small: expected fast or small"),
        (["PROFILE="], "PROFILE is : expected fast or small"),
        (["bench", "PROFILE=small"], "bench prints both profiles as GCC compiles them"),
        (["bench", "CC=clang"], "bench prints both profiles as GCC compiles them"),
    ],
)
def test_setting_that_is_none_is_refused(words: list[str], message: str) -> None:
    done = make(MUNACL, "-n", *words)
    assert done.returncode == 2
    assert message in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@needs.program("clang")
def test_clang_by_its_name_alone_builds_all(profile: str, tmp_path: Path) -> None:
    settings = [f"BUILD={tmp_path}", f"PROFILE={profile}", "-s"]
    built = tmp_path / profile
    done = make(MUNACL, *settings, "CC=clang", "all", "checks", "boards", str(built / "bench.elf"))
    assert done.returncode == 0, done.stderr
    library = built / f"libmunacl-{profile}.a"
    assert checks.instructions(listing(library)).problems == ()
    version = subprocess.run(["clang", "--version"], check=True, capture_output=True, text=True)
    if "version 14." in version.stdout:
        size = munacl.Programs(tmp_path).code_bytes(profile)
        page = (ROOT / "docs" / "reference" / "munacl.md").read_text()
        assert f"{size:,} B of `{profile}`" in page
    assert checks.taint(built / "taint.elf") == checks.Check("34 calls", ())
    run = m3.run(built / "bench.elf")
    assert (run.code, b"failed" in run.output) == (0, False)

    def producers() -> set[str]:
        comment = ["arm-none-eabi-readelf", "-p", ".comment", str(library)]
        text = subprocess.run(comment, check=True, capture_output=True, text=True).stdout
        lines = [line for line in text.splitlines() if not line.startswith("File:")]
        return {name for name in ("clang", "GCC") if name in "\n".join(lines)}

    assert producers() == {"clang"}
    # Another compiler compiles anew, and the same one does not.
    assert make(MUNACL, *settings).returncode == 0
    assert producers() == {"GCC"}
    time = library.stat().st_mtime_ns
    assert make(MUNACL, *settings).returncode == 0
    assert library.stat().st_mtime_ns == time
