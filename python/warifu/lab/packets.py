# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The link's packet log: parsed, joined to the trials of a part, and kept in small.

The log (crates/lab/link/src/packet_log.rs) has each packet with its fate, by ports and the kernel's
clock. A trial's packets are those of its client's port from its own SYN on, until the port's next
trial. What is kept has sequence and acknowledgement numbers relative to the SYNs, which are 0, as
in the simulator.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from warifu.files import FileRefused, read_bytes, replacing
from warifu.lab.errors import LabError
from warifu.lab.trials import Connection
from warifu.results.packets import ABOUT, COLUMNS
from warifu.results.packets import VERSION as VERSION_KEPT

MAGIC = b"WRFLINK1"
VERSION = 1

RECORD = np.dtype(
    [
        ("arrival_ns", "<u8"),
        ("due_ns", "<u8"),
        ("seq", "<u4"),
        ("ack", "<u4"),
        ("id", "<u4"),
        ("client_port", "<u2"),
        ("server_port", "<u2"),
        ("payload", "<u2"),
        ("ip_bytes", "<u2"),
        ("flags", "u1"),
        ("protocol", "u1"),
        ("direction", "u1"),
        ("fate", "u1"),
        ("sack_blocks", "u1"),
        ("padding", "u1", 3),
        ("sack_left", "<u4"),
    ]
)
"""A record of the log."""

_HEADER = np.dtype([("magic", "S8"), ("version", "<u4"), ("record_bytes", "<u4")])
_MOST_BYTES = 1 << 30
_TCP = 6
_SYN, _ACK = 0x02, 0x10
_UP, _DOWN = 0, 1
_DELIVERED = 0

PACKETS, MESSAGES = COLUMNS["packets"], COLUMNS["messages"]


class PacketLogRefused(LabError):  # noqa: N818 - what happened, not what it is
    """What is no packet log, or no whole one; one line that names it."""


@dataclass(frozen=True)
class Kept:
    """What is kept of a part's packets."""

    packets: pl.DataFrame
    messages: pl.DataFrame
    elsewhere: int
    """TCP packets of no trial: of connections made beforehand to get sessions, and what came late
    of an earlier connection."""


def read(path: Path) -> npt.NDArray[Any]:
    """The records of a log, as `RECORD`. Raises PacketLogRefused."""
    try:
        content = read_bytes(path, _MOST_BYTES)
    except FileRefused as error:
        raise PacketLogRefused(str(error)) from None
    except OSError as error:
        raise PacketLogRefused(f"{path}: cannot be read: {error.strerror}") from None
    return parse(content, str(path))


def parse(content: bytes, name: str) -> npt.NDArray[Any]:
    """The records of a log's content, as `RECORD`; `name` is what messages call it.

    Raises PacketLogRefused for what is no log, one of another version, and a record that was cut.
    """
    if not content.startswith(MAGIC):
        raise PacketLogRefused(f"{name}: is no packet log of warifu-link: it does not begin with "
                               f"{MAGIC.decode()}")  # fmt: skip
    if len(content) < _HEADER.itemsize:
        raise PacketLogRefused(f"{name}: was cut in its header, after {len(content)} bytes")
    header = np.frombuffer(content, _HEADER, count=1)[0]
    version, length = int(header["version"]), int(header["record_bytes"])
    if (version, length) != (VERSION, RECORD.itemsize):
        raise PacketLogRefused(
            f"{name}: is a packet log of version {version} with records of {length} bytes, "
            f"expected version {VERSION} and {RECORD.itemsize}: use the warifu-link of this version"
        )
    whole, rest = divmod(len(content) - _HEADER.itemsize, RECORD.itemsize)
    if rest:
        raise PacketLogRefused(
            f"{name}: was cut in record {whole}, of which {rest} of {RECORD.itemsize} bytes are "
            "there: measure again"
        )
    return np.frombuffer(content, RECORD, offset=_HEADER.itemsize)


def keep(log: npt.NDArray[Any], connections: Sequence[Connection], first_trial: int) -> Kept:
    """What is kept of a log: the TCP packets of each trial. `connections` are the part's, in the
    order of its trials."""
    tcp = log[log["protocol"] == _TCP]
    packets = pl.DataFrame(
        {name: tcp[name] for name in ("arrival_ns", "due_ns", "seq", "ack", "payload")}
        | {name: tcp[name] for name in ("flags", "direction", "fate", "client_port")}
    ).with_columns(pl.col("arrival_ns", "due_ns", "seq", "ack").cast(pl.Int64))
    trials = pl.DataFrame(
        {
            "trial": range(first_trial, first_trial + len(connections)),
            "client_port": [one.port for one in connections],
            "start_ns": [one.start_ns for one in connections],
        },
        schema={"trial": pl.Int32, "client_port": pl.UInt16, "start_ns": pl.Int64},
    )
    # Both stably, so that packets stay in the order in which the link read them.
    joined = packets.sort("arrival_ns", maintain_order=True).join_asof(
        trials.sort("start_ns", maintain_order=True),
        left_on="arrival_ns",
        right_on="start_ns",
        by="client_port",
        strategy="backward",
        check_sortedness=False,
    )
    of_trials = _from_the_syn_on(joined.filter(pl.col("trial").is_not_null()))
    relative = _relative(of_trials).sort("trial", maintain_order=True)
    kept = relative.select(*PACKETS).cast(pl.Schema(PACKETS))
    return Kept(kept, _messages(connections, first_trial), len(tcp) - kept.height)


def _from_the_syn_on(packets: pl.DataFrame) -> pl.DataFrame:
    """Without what is left of an earlier connection of the same port."""
    begins = (pl.col("direction") == _UP) & (pl.col("flags") & (_SYN | _ACK) == _SYN)
    return packets.filter(begins.cum_max().over("trial"))


def _relative(packets: pl.DataFrame) -> pl.DataFrame:
    """With numbers from the SYNs on, times from connect() on, and copies counted."""
    up, syn = pl.col("direction") == _UP, pl.col("flags") & _SYN != 0
    acknowledges = pl.col("flags") & _ACK != 0
    # A second SYN-ACK may be another request's of a server that had given up the first.
    answered = ~up & syn & (pl.col("fate") == _DELIVERED)
    of_client = pl.col("seq").filter(up & syn).first().over("trial")
    of_server = pl.coalesce(
        pl.col("seq").filter(answered).first().over("trial"),
        pl.col("seq").filter(~up & syn).first().over("trial"),
    )
    own = pl.when(up).then(of_client).otherwise(of_server)
    peers = pl.when(up).then(of_server).otherwise(of_client)
    wrapped = 1 << 32
    seq, ack = (pl.col("seq") - own) % wrapped, (pl.col("ack") - peers) % wrapped
    delay = pl.when(pl.col("fate") == _DELIVERED).then(pl.col("due_ns") - pl.col("arrival_ns"))
    numbered = packets.with_columns(
        seq.fill_null(0).alias("seq"),
        pl.when(acknowledges).then(ack).otherwise(0).fill_null(0).alias("ack"),
        delay.alias("delay_ns"),
        (pl.col("arrival_ns") - pl.col("start_ns")).alias("at_ns"),
    )
    same = ("trial", "direction", "seq", "payload", "flags")
    return numbered.with_columns(pl.col("seq").cum_count().over(same).alias("copy"))


def _messages(connections: Sequence[Connection], first_trial: int) -> pl.DataFrame:
    rows = [
        (first_trial + index, direction, number, name, length)
        for index, one in enumerate(connections)
        for direction, messages in ((_UP, one.client_messages), (_DOWN, one.server_messages))
        for number, (name, length) in enumerate(messages)
    ]
    return pl.DataFrame(rows, schema=MESSAGES, orient="row")


def write(path: Path, table: pl.DataFrame, about: dict[str, Any]) -> None:
    """Keeps a table as a file that says what it is of; whole or not at all. Raises OSError."""
    content = io.BytesIO()
    table.write_parquet(
        content,
        compression="zstd",
        compression_level=9,
        statistics=False,
        metadata={ABOUT: json.dumps({"version": VERSION_KEPT, **about})},
    )
    with replacing(path) as file:
        file.write(content.getvalue())
