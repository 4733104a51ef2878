# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the lab needs to know of a DDS sample and its answer, or of a stream of samples."""

from __future__ import annotations

from dataclasses import dataclass

from warifu.case import Case, DdsStack
from warifu.dds.governance import Basic, Governance, Protection
from warifu.lab.errors import LabError

LEAST_BYTES, MOST_BYTES = 16, 8 << 20
"""What the probes take (dds/probes)."""


@dataclass(frozen=True)
class Exchange:
    """One sample and its answer, or a stream."""

    stack: DdsStack
    topic: str
    """As ROS 2 has it; on the wire rt/ comes before it."""
    sample_bytes: int
    """Of the string with its zero, there and back."""
    rate: int | None
    """Samples a second of a stream; None: each is answered before the next is sent."""

    @staticmethod
    def of(case: Case) -> Exchange:
        """That of a case. Raises LabError for a case of another protocol."""
        stack = case.stack
        if not isinstance(stack, DdsStack):
            raise LabError(f"stack.protocol is {stack.protocol}: expected dds")
        pattern = case.pattern
        return Exchange(stack, pattern.path.removeprefix("/"), pattern.response_body, pattern.rate)

    @property
    def is_secured(self) -> bool:
        """Whether it has DDS Security."""
        return self.stack.crypto != "none"

    @property
    def governance(self) -> Governance:
        """What both ends' keystore says."""
        stack = self.stack
        discovery = Protection(stack.discovery_protection)
        return Governance(
            data=Basic(stack.data_protection),
            metadata=Protection(stack.metadata_protection),
            rtps=Protection(stack.rtps_protection),
            discovery=discovery,
            liveliness=discovery,
        )


def why_no_exchange(exchange: Exchange) -> str | None:
    """Why the probes cannot run it, with what to change; None if they can. What a middleware has no
    plugin for is refused with the study (crates/core/model/src/study/resolve/dds.rs)."""
    if not LEAST_BYTES <= exchange.sample_bytes <= MOST_BYTES:
        return (
            f"pattern.response_body is {exchange.sample_bytes}: expected a sample of {LEAST_BYTES} "
            f"to {MOST_BYTES} B"
        )
    return None
