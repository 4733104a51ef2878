# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Fast DDS 2.9: how `fastdds-probe` is configured."""

from __future__ import annotations

from pathlib import Path

from warifu.dds.keystore import Enclave
from warifu.lab.dds.exchange import Exchange
from warifu.lab.dds.place import Place

PROBE = "fastdds-probe"


class FastDds:
    """Participants of Fast DDS, with its own plugin or none."""

    probe = PROBE
    # Each may name a file of the caller's, which would say what root reads and writes: profiles can
    # have a log's file in them. The probe leaves them aside as well, and DEFAULT_FASTRTPS_PROFILES
    # in the current folder; both, since either may be changed alone.
    without = (
        "FASTRTPS_DEFAULT_PROFILES_FILE",
        "FASTDDS_DEFAULT_PROFILES_FILE",
        "FASTDDS_ENVIRONMENT_FILE",
        "FASTDDS_BUILTIN_TRANSPORTS",
        "FASTDDS_STATISTICS",
        "ROS_DISCOVERY_SERVER",
    )

    def arguments(
        self, exchange: Exchange, enclave: Enclave | None, place: Place
    ) -> list[str | Path]:
        """Of the probe, beside its role's own."""
        security: list[str | Path] = [] if enclave is None else ["--enclave", enclave.folder]
        return ["--address", place.address, "--peer", place.peer, *security]

    def environment(self, exchange: Exchange, place: Place) -> dict[str, str]:
        """Of the probe."""
        return {"SKIP_DEFAULT_XML_FILE": "1"}
