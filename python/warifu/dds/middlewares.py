# SPDX-License-Identifier: Apache-2.0 OR MIT
"""DDS middlewares and libraries of cryptography, by the names of their files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from warifu.files import FileRefused, read_bytes

_PLUGIN_NAMES = (b"DDS:Crypto:AES-GCM-GMAC", b"builtin.AES-GCM-GMAC", b"dds_security_crypto")
"""In every implementation of DDS Security: the builtin plugin's class id (DDS Security 1.1, 9.5.1),
Fast DDS's name for it (SecurityPluginFactory.cpp), Cyclone DDS's library (q_security.h)."""

#: Of a library that is looked through: Fast DDS 2.9 has 9 MB.
_MOST_BYTES = 64 << 20

_MIDDLEWARE = (
    (r"libfastrtps\.so\.?(?P<version>[\d.]*)", "Fast DDS"),
    (r"libfastdds\.so\.?(?P<version>[\d.]*)", "Fast DDS"),
    (r"libddsc\.so\.?(?P<version>[\d.]*)", "Cyclone DDS"),
    (r"libnddsc\.so\.?(?P<version>[\d.]*)", "RTI Connext"),
    (r"libOpenDDS_Dcps\.so\.?(?P<version>[\d.]*)", "OpenDDS"),
)
#: Other libraries of middlewares: their plugins of DDS Security above all.
_PARTS = ("libdds_security", "libwarifu_dds", "libndds", "libOpenDDS_")
#: Libraries with cryptography of their own, which the probe does not see.
_OTHERS = r"libcrypto(-\w+)?\.so\.1|libmbedcrypto|libwolfssl|libgnutls|libsodium|libgcrypt"


def cyclone_folders() -> list[Path]:
    """Where Debian keeps Cyclone DDS's plugins, apart from other libraries: no program looks there
    by itself."""
    return sorted(Path("/usr/lib").glob("*/libddsc0debian"))


def found(libraries: Sequence[str]) -> tuple[str, Path] | None:
    """The middleware among the libraries of a process: its name with its version, as far as its
    file says it, and that file."""
    for path in libraries:
        for pattern, name in _MIDDLEWARE:
            match = re.match(pattern, Path(path).name)
            if match:
                # The file behind the link has the whole version.
                real = os.path.realpath(path)
                whole = re.match(pattern, Path(real).name) or match
                return f"{name} {whole['version']}".strip(), Path(real)
    return None


def is_part(name: str) -> bool:
    """Whether a library, or a function that is named with its library, is a middleware's or a
    plugin's of DDS Security."""
    return name.startswith(_PARTS) or any(re.match(pattern, name) for pattern, _ in _MIDDLEWARE)


def is_other_cryptography(name: str) -> bool:
    """Whether a library has cryptography that the probe does not see."""
    return re.match(_OTHERS, name) is not None


def other_cryptography(libraries: Sequence[str]) -> str | None:
    """What of the libraries the probe does not see: Warifu's own plugin, or else others."""
    names = [Path(path).name for path in libraries]
    own = [name for name in names if name.startswith("libwarifu_dds_crypto")]
    return " and ".join(own or filter(is_other_cryptography, names)) or None


def has_security(library: Path) -> bool:
    """Whether a middleware's library holds the builtin plugin, or its name, as those do that load
    it (Cyclone DDS)."""
    try:
        # A recording names it, and with it the program that was recorded: it may be any file.
        content = read_bytes(library, _MOST_BYTES)
    except (OSError, ValueError, FileRefused):
        # What cannot be read is not judged.
        return True
    return any(name in content for name in _PLUGIN_NAMES)
