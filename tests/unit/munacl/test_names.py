# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Source written for NaCl compiles with munacl's headers and links with its library."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.paths import ROOT

Build = Callable[..., Path]
MUNACL = ROOT / "firmware" / "munacl"
ARM = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-std=c11", "-Wall", "-Werror"]
#: NaCl's headers, of an operation and of a primitive, with what the operation's name stands for:
#: its functions' suffixes and its constants.
HEADERS = {
    "crypto_auth": ("hmacsha512256", ["", "_verify"], ["BYTES", "KEYBYTES"]),
    "crypto_box": (
        "curve25519xsalsa20poly1305",
        ["", "_open", "_keypair", "_beforenm", "_afternm", "_open_afternm"],
        [
            "PUBLICKEYBYTES",
            "SECRETKEYBYTES",
            "BEFORENMBYTES",
            "NONCEBYTES",
            "ZEROBYTES",
            "BOXZEROBYTES",
        ],
    ),
    "crypto_dh": (
        "curve25519",
        ["", "_keypair"],
        ["BYTES", "PUBLICKEYBYTES", "SECRETKEYBYTES"],
    ),
    "crypto_hash": ("sha512", [""], ["BYTES"]),
    "crypto_hashblocks": ("sha512", [""], ["STATEBYTES", "BLOCKBYTES"]),
    "crypto_onetimeauth": ("poly1305", ["", "_verify"], ["BYTES", "KEYBYTES"]),
    "crypto_scalarmult": ("curve25519", ["", "_base"], ["BYTES", "SCALARBYTES"]),
    "crypto_secretbox": (
        "xsalsa20poly1305",
        ["", "_open"],
        ["KEYBYTES", "NONCEBYTES", "ZEROBYTES", "BOXZEROBYTES"],
    ),
    "crypto_sign": (
        "ed25519",
        ["", "_open", "_keypair"],
        ["BYTES", "PUBLICKEYBYTES", "SECRETKEYBYTES"],
    ),
    "crypto_stream": ("xsalsa20", ["", "_xor"], ["KEYBYTES", "NONCEBYTES"]),
}
#: Headers of one primitive, with its functions and constants.
PRIMITIVES = {
    "crypto_core_hsalsa20": ([""], ["OUTPUTBYTES", "INPUTBYTES", "KEYBYTES", "CONSTBYTES"]),
    "crypto_core_salsa20": ([""], ["OUTPUTBYTES", "INPUTBYTES", "KEYBYTES", "CONSTBYTES"]),
    "crypto_stream_salsa20": (["", "_xor"], ["KEYBYTES", "NONCEBYTES"]),
    "crypto_verify_16": ([""], ["BYTES"]),
    "crypto_verify_32": ([""], ["BYTES"]),
}


def program(header: str, names: list[tuple[str, list[str], list[str]]], primitive: str) -> str:
    """Takes the address of every function and the value of every constant."""
    functions = [name + suffix for name, suffixes, _ in names for suffix in suffixes]
    constants = [f"{name}_{what}" for name, _, all_of in names for what in all_of]
    lines = [f"#include <{header}.h>"]
    lines += [f'_Static_assert({constant} >= 8, "");' for constant in constants]
    lines += [f"void (*const at_{i})(void) = (void (*)(void)){f};" for i, f in enumerate(functions)]
    if primitive:
        lines.append(f'_Static_assert(sizeof {names[0][0]}_PRIMITIVE == sizeof "{primitive}", "");')
    lines.append("void randombytes(unsigned char *x, unsigned long long n) { (void)x; (void)n; }")
    return "\n".join(lines) + "\n"


def link(source: str, library: Path, folder: Path) -> None:
    (folder / "program.c").write_text(source)
    command = [*ARM, "-I", str(MUNACL / "include" / "nacl"), str(folder / "program.c")]
    command += [str(library), "-nostartfiles", "-Wl,-e,0", "-o", str(folder / "program.elf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("operation", HEADERS)
def test_program_with_names_of_an_operation_links(
    build: Build, profile: str, operation: str, tmp_path: Path
) -> None:
    primitive, functions, constants = HEADERS[operation]
    library = build(profile, f"libmunacl-{profile}.a")
    names = [(operation, functions, constants)]
    link(program(operation, names, primitive), library, tmp_path)
    full = f"{operation}_{primitive}"
    link(program(full, [(full, functions, constants)], ""), library, tmp_path)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_program_with_names_of_a_primitive_links(
    build: Build, profile: str, name: str, tmp_path: Path
) -> None:
    library = build(profile, f"libmunacl-{profile}.a")
    link(program(name, [(name, *PRIMITIVES[name])], ""), library, tmp_path)


def test_every_header_is_one_of_nacls() -> None:
    there = {path.stem for path in (MUNACL / "include" / "nacl").iterdir()}
    expected = set(HEADERS) | {f"{name}_{of[0]}" for name, of in HEADERS.items()}
    assert there == expected | set(PRIMITIVES) | {"randombytes"}
