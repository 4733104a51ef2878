# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the lab needs to know of a CoAP exchange."""

from __future__ import annotations

from dataclasses import dataclass

OCCUPIED = ("/", "/time", "/async", "/.well-known/core")
"""Paths where coap-server has resources of its own, which take no body."""

BODY_BYTES_MAX = 1_000_000
"""More than any device asks for in one exchange; coap-client reads no longer file."""


@dataclass(frozen=True)
class Exchange:
    """One GET request and its response."""

    confirmable: bool
    """CON, sent again until acknowledged, or NON, sent once."""
    path: str
    response_body_bytes: int
    """Up to 1097 B come in one datagram with libcoap's MTU of 1152 B; longer ones come in blocks
    of 1024 B, a round trip each."""
    token_bytes: int = 1
    ack_timeout_ms: int = 2_000
    ack_random_factor: float = 1.5
    max_retransmit: int = 4
    """RFC 7252 section 4.8, as libcoap has them."""
    concurrent: int = 1
    """Requests that begin at the same moment, each on a session of its own."""

    @property
    def give_up_seconds(self) -> float:
        """When the sender of a CON gives up: MAX_TRANSMIT_WAIT of RFC 7252 section 4.8.2."""
        doublings: int = (1 << (self.max_retransmit + 1)) - 1
        return self.ack_timeout_ms / 1_000 * doublings * self.ack_random_factor


def why_not_measurable(exchange: Exchange) -> str | None:
    """Why the lab cannot run an exchange, with what to change; None if it can."""
    if exchange.path.partition("?")[0] in OCCUPIED:
        return (
            f"pattern.path is {exchange.path}: coap-server has a resource of its own there; choose "
            'another path, such as "/sensors/temperature"'
        )
    if not 0 <= exchange.response_body_bytes <= BODY_BYTES_MAX:
        return (
            f"pattern.response_body is {exchange.response_body_bytes}: expected 0 to "
            f"{BODY_BYTES_MAX} B"
        )
    return None
