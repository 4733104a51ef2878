# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Other libraries whose sources a user has, for the same table (MUNACL_PEERS)."""

from __future__ import annotations

import shutil
from pathlib import Path

#: What is in a folder of each library's sources, and where its code is from there.
_SIGNS = {
    "monocypher": {"monocypher.c": ".", "src/monocypher.c": "src"},
    "bearssl": {"inc/bearssl.h": "."},
}


def find(names: str) -> dict[str, Path]:
    """The libraries in folders, whose names have colons between them. Raises WarifuError, which
    names a folder that has none."""
    from warifu._core import WarifuError

    found: dict[str, Path] = {}
    for name in filter(None, names.split(":")):
        folder = Path(name).absolute()
        here = {
            library: folder / place
            for library, signs in _SIGNS.items()
            for sign, place in signs.items()
            if (folder / sign).is_file()
        }
        if not here:
            what = "has none of " + ", ".join(sign for signs in _SIGNS.values() for sign in signs)
            raise WarifuError(
                f"MUNACL_PEERS: {folder}: {what if folder.is_dir() else 'is no folder'}: name "
                "folders of sources of Monocypher and BearSSL, with colons between them"
            )
        for library in here.keys() & found.keys():
            raise WarifuError(
                f"MUNACL_PEERS: {folder}: another folder has {library} as well: name one of them"
            )
        found |= here
    return found


def link(found: dict[str, Path], build: Path) -> tuple[str, ...]:
    """Puts them where the Makefile of firmware/munacl takes them from, in place of others and of
    what was built of these. Raises OSError."""
    peers = build / "peers"
    if peers.exists():
        shutil.rmtree(peers)
    (peers / "sources").mkdir(parents=True)
    for library, folder in found.items():
        (peers / "sources" / library).symlink_to(folder, target_is_directory=True)
    return tuple(found)
