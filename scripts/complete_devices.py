#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Scales what published benchmarks lack of the devices in profiles/devices, from one another, and
writes it below the mark in each profile (`warifu.devices.shipped`)."""

from __future__ import annotations

from pathlib import Path

from warifu.devices import shipped

FOLDER = Path(__file__).resolve().parents[1] / "profiles" / "devices"


def main() -> None:
    """Rewrites the profiles that have the mark."""
    files = {file.stem: file for file in sorted(FOLDER.glob("*.toml"))}
    texts = {name: file.read_text(encoding="utf-8") for name, file in files.items()}
    corpus = shipped.corpus(texts)
    for name in shipped.published(texts):
        files[name].write_text(shipped.completed(name, texts[name], corpus), encoding="utf-8")


if __name__ == "__main__":
    main()
