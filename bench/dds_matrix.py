# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The interoperability matrix of our DDS Security plugin as text: ours with the builtin plugins of
Cyclone DDS and of Fast DDS, by what is protected and by role. As root:

    sudo .venv/bin/python bench/dds_matrix.py

Each cell is run first with the builtin plugins alone. *Works*: data came through in both
directions, and the capture has samples, announcements and crypto headers as the governance says.
Exit code 1 if a cell that can be judged does not work, 3 if something is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import CalledProcessError

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support import cyclone, dds_matrix, dds_probes  # noqa: E402
from support.dds_matrix import CONTROL, GOVERNANCE, ISSUES, Cell  # noqa: E402
from warifu.lab import interruption  # noqa: E402
from warifu.tools import ToolMissing  # noqa: E402

PEERS = {
    "cyclone": ("Cyclone DDS", (CONTROL, "writes", "reads", "both")),
    "fastdds": ("Fast DDS", (f"{CONTROL} pings", f"{CONTROL} pongs", "pings", "pongs")),
}
SHORT_KEYS = "as-sros2"
"""The governance that is tried with keys of 128 bit as well."""
NOTES = (
    "Not judgeable: the builtin plugins fail there among themselves. With Fast DDS 2.9, Cyclone",
    "begins the handshake (its subject's name comes first) and sends optional fields; the other",
    f"way round authentication fails between the builtin plugins ({ISSUES}).",
)


def table(peer: str, cells: Sequence[Cell]) -> list[str]:
    """In Markdown, a line for each governance."""
    name, roles = PEERS[peer]
    found = by_role(cells)
    heading = ["protected", *(role if CONTROL in role else f"ours {role}" for role in roles)]
    rows = [heading]
    for governance in dict.fromkeys(cell.governance for cell in cells):
        row = [f"{governance} ({kinds(governance)})"]
        for role in roles:
            row.append(words(found[governance, role], found))
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"Ours with {name}'s builtin plugin:", ""]
    for number, row in enumerate(rows):
        filled = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"| {' | '.join(filled)} |")
        if number == 0:
            lines.append(f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    return lines


def kinds(governance: str) -> str:
    """Data, metadata, rtps, discovery and liveliness, shortly."""
    short = {"WITH_ORIGIN_AUTHENTICATION": "ORIGIN", "_": " "}
    said = []
    for kind in vars(GOVERNANCE[governance.partition(",")[0]]).values():
        for long, word in short.items():
            kind = kind.replace(long, word)
        said.append(kind)
    return ", ".join(said)


def words(cell: Cell, found: dict[tuple[str, str], Cell]) -> str:
    """What a cell says; of ours, nothing certain where its control fails."""
    if CONTROL in cell.role:
        return cell.verdict
    if control_of(cell, found).works:
        return cell.verdict
    return f"not judgeable ({cell.verdict})"


def control_of(cell: Cell, found: dict[tuple[str, str], Cell]) -> Cell:
    """The same pair with builtin plugins alone."""
    role = CONTROL if cell.peer == "cyclone" else f"{CONTROL} {cell.role}"
    return found[cell.governance, role]


def by_role(cells: Sequence[Cell]) -> dict[tuple[str, str], Cell]:
    """By governance and role; each peer has roles of its own."""
    return {(cell.governance, cell.role): cell for cell in cells}


def wrong(cells: Sequence[Cell]) -> list[Cell]:
    """Cells of ours that can be judged and do not work."""
    found = by_role(cells)
    return [
        cell
        for cell in cells
        if CONTROL not in cell.role
        and control_of(cell, found).works
        and (not cell.works or cell.problems)
    ]


def run(peer: str, names: Sequence[str], folder: Path) -> Iterator[Cell]:
    """All cells of a peer."""
    with contextlib.ExitStack() as ends:
        if peer == "cyclone":
            network = ends.enter_context(cyclone.network())
        else:
            probes = {
                which: dds_probes.build(folder, f"{program}-probe")
                for which, program in (("cyclone", "cyclonedds"), ("fastdds", "fastdds"))
            }
        for name in names:
            place = folder / peer / name
            cells = (
                dds_matrix.with_cyclone(network, place, name)
                if peer == "cyclone"
                else dds_matrix.with_fast_dds(probes, place, name)
            )
            if peer == "fastdds" and name == SHORT_KEYS:
                cells = itertools.chain(
                    cells,
                    dds_matrix.with_fast_dds(probes, folder / "short-keys", name, key_bits=128),
                )
            for cell in cells:
                interruption.check()
                print(f"{peer}, {name}, {cell.role}: {cell.verdict}", file=sys.stderr, flush=True)
                yield cell


def why(reason: Exception) -> str:
    """In a line, with what a program that failed has said itself."""
    said = str(reason)
    if isinstance(reason, CalledProcessError):
        words = (reason.stderr or "").strip().splitlines() or [f"exit code {reason.returncode}"]
        said = f"`{' '.join(map(str, reason.cmd))}` failed: {words[-1]}"
    return f"{said}: it needs root and `scripts/setup --with tests`"


def main() -> int:
    """Runs the cells, prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", choices=PEERS, help="one alone")
    parser.add_argument("--governance", choices=GOVERNANCE, nargs="+", default=list(GOVERNANCE))
    arguments = parser.parse_args()
    peers = [arguments.peer] if arguments.peer else list(PEERS)
    cells: list[Cell] = []
    try:
        with interruption.deferred(), tempfile.TemporaryDirectory(prefix="warifu-dds-") as folder:
            for peer in peers:
                cells += run(peer, arguments.governance, Path(folder))
    except (ToolMissing, FileNotFoundError, PermissionError, CalledProcessError) as reason:
        print(f"matrix: {why(reason)}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("matrix: interrupted", file=sys.stderr)
        return 130
    bad = wrong(cells)
    judged = [cell for cell in cells if CONTROL not in cell.role]
    blind = sum(not control_of(cell, by_role(cells)).works for cell in judged)
    print(
        f"{'FAIL' if bad else 'PASS'}: {len(judged)} cells of ours: "
        f"{len(judged) - blind - len(bad)} work, {len(bad)} do not, {blind} are not judgeable."
    )
    for peer in peers:
        print("", *table(peer, [cell for cell in cells if cell.peer == peer]), sep="\n")
    print("", *NOTES, sep="\n")
    for cell in bad:
        print(f"\n{cell.peer}, {cell.governance}, {cell.role}:\n{cell.said}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
