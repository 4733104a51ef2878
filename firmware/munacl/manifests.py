#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes what other build systems read, from the Makefile's lists: sources.cmake (CMake, Zephyr),
library.json (PlatformIO) and Warifu.munacl.pdsc (CMSIS-Pack)."""

import json
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import quoteattr

HERE = Path(__file__).parent
VERSION = "0.1.0"
PROFILES = ("fast", "small")
#: PlatformIO's platforms with boards of a Cortex-M3: SAM3X; LPC17xx; EFM32 GG and LG; STM32F1, F2
#: and L1. Their boards with other cores are not told apart: a manifest has no key for it.
PLATFORMS = ["atmelsam", "nxplpc", "siliconlabsefm32", "ststm32"]
SUMMARY = "NaCl for a Cortex-M3, constant time on that core"


def sources(profile: str, which: str = "sources") -> list[str]:
    """The Makefile's list; with `quick` of what it compiles for speed."""
    command = ["make", "--silent", "-C", str(HERE), f"PROFILE={profile}", f"print-{which}"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted(text.split())


def cmake() -> str:
    """The version and both lists as variables, and what is compiled for speed."""
    parts = ["# SPDX-License-Identifier: Apache-2.0 OR MIT\n# Written by manifests.py.\n"]
    parts.append(f"set(MUNACL_VERSION {VERSION})\n")
    for profile in PROFILES:
        lines = "".join(f"  {name}\n" for name in sources(profile))
        parts.append(f"set(MUNACL_SOURCES_{profile}\n{lines})\n")
    lines = "".join(f"  {name}\n" for name in sources("fast", "quick"))
    parts.append(f"set(MUNACL_QUICK_fast\n{lines})\n")
    return "".join(parts)


def platformio() -> str:
    """The fast profile, which `-D MUNACL_SMALL` in an environment does not change."""
    manifest = {
        "name": "munacl",
        "version": VERSION,
        "description": SUMMARY,
        "license": "Apache-2.0 OR MIT",
        "frameworks": "*",
        "platforms": PLATFORMS,
        "headers": "munacl.h",
        "build": {
            "includeDir": "include",
            "srcDir": "src",
            "flags": ["-I src", "-std=c11"],
            "srcFilter": ["-<*>"] + [f"+<{name.removeprefix('src/')}>" for name in sources("fast")],
        },
    }
    return json.dumps(manifest, indent=2) + "\n"


def pack() -> str:
    """One component for each profile."""
    components = []
    for profile in PROFILES:
        files = [
            '<file category="include" name="include/"/>',
            '<file category="include" name="include/nacl/"/>',
            '<file category="include" name="src/"/>',
        ]
        for name in sources(profile):
            kind = "sourceAsm" if name.endswith(".S") else "sourceC"
            files.append(f"<file category={quoteattr(kind)} name={quoteattr(name)}/>")
        define = "#define MUNACL_SMALL" if profile == "small" else ""
        default = ' isDefaultVariant="true"' if profile == "fast" else ""
        lines = "".join(f"        {line}\n" for line in files)
        components.append(
            f'    <component Cclass="Security" Cgroup="munacl" Cvariant="{profile}" '
            f'Cversion="{VERSION}" condition="Cortex-M3"{default}>\n'
            f"      <description>{SUMMARY}: {profile}</description>\n"
            + (f"      <Pre_Include_Global_h>{define}</Pre_Include_Global_h>\n" if define else "")
            + f"      <files>\n{lines}      </files>\n    </component>\n"
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        "<!-- SPDX-License-Identifier: Apache-2.0 OR MIT; written by manifests.py. -->\n"
        '<package schemaVersion="1.7.7" xmlns:xs="http://www.w3.org/2001/XMLSchema-instance"'
        ' xs:noNamespaceSchemaLocation="PACK.xsd">\n'
        "  <vendor>Warifu</vendor>\n  <name>munacl</name>\n"
        f"  <description>{SUMMARY}</description>\n"
        "  <url/>\n"
        f'  <releases>\n    <release version="{VERSION}">First release</release>\n  </releases>\n'
        '  <conditions>\n    <condition id="Cortex-M3">\n'
        '      <require Dcore="Cortex-M3"/>\n    </condition>\n  </conditions>\n'
        f"  <components>\n{''.join(components)}  </components>\n</package>\n"
    )


def main() -> None:
    """Writes them here, or to the folder of the first argument."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, text in (
        ("sources.cmake", cmake()),
        ("library.json", platformio()),
        ("Warifu.munacl.pdsc", pack()),
    ):
        (folder / name).write_text(text)


main()
