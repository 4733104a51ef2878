# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Cyclone DDS 0.10: how `cyclonedds-probe` is configured."""

from __future__ import annotations

from pathlib import Path

from warifu import tools
from warifu.dds import counters
from warifu.dds.keystore import Enclave
from warifu.dds.middlewares import cyclone_folders
from warifu.lab.dds.exchange import Exchange
from warifu.lab.dds.place import SOCKET_BYTES, Place

PROBE = "cyclonedds-probe"
PLUGIN = "libwarifu_dds_crypto.so"


def configuration(address: str, peer: str) -> str:
    """As CYCLONEDDS_URI takes it: the link has two ends and carries no multicast."""
    return (
        '<CycloneDDS><Domain id="any"><General>'
        f'<Interfaces><NetworkInterface address="{address}"/></Interfaces>'
        "<AllowMulticast>false</AllowMulticast></General>"
        # Without multicast a peer tries the ports of the first few participants.
        "<Discovery><ParticipantIndex>auto</ParticipantIndex>"
        f'<Peers><Peer address="{peer}"/></Peers></Discovery>'
        f'<Internal><SocketReceiveBufferSize max="{SOCKET_BYTES} B"/></Internal>'
        "<Tracing><Verbosity>warning</Verbosity><OutputFile>stderr</OutputFile></Tracing>"
        "</Domain></CycloneDDS>"
    )


class Cyclone:
    """Participants of Cyclone DDS, with its own plugin, Warifu's or none."""

    probe = PROBE
    without = ("CYCLONEDDS_URI",)

    def arguments(
        self, exchange: Exchange, enclave: Enclave | None, place: Place
    ) -> list[str | Path]:
        """Of the probe, beside its role's own."""
        writes: list[str | Path] = ["--writes", place.writes]
        if enclave is None:
            return writes
        security: list[str | Path] = [*writes, "--enclave", enclave.folder]
        if exchange.stack.crypto == "warifu":
            security += ["--crypto", f"{tools.find(PLUGIN)}:init_crypto"]
        return security

    def environment(self, exchange: Exchange, place: Place) -> dict[str, str]:
        """Of the probe; its configuration is written."""
        config = place.folder / "cyclone.xml"
        config.write_text(configuration(place.address, place.peer))
        return {
            "CYCLONEDDS_URI": config.as_uri(),
            "LD_LIBRARY_PATH": ":".join(map(str, cyclone_folders())),
            # What decides beside a domain's properties is the case's, not the caller's.
            "WARIFU_DDS_AEAD": exchange.stack.aead,
            "WARIFU_DDS_MAX_BLOCKS_PER_SESSION": str(1 << 32),
            counters.VARIABLE: str(place.counters),
        }
