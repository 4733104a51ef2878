# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the lab needs to know of a CoAP exchange."""

from __future__ import annotations

from dataclasses import dataclass

from warifu.case import Case, CoapStack
from warifu.lab.errors import LabError

OCCUPIED = ("/", "/time", "/async", "/.well-known/core")
"""Paths where coap-server has resources of its own, which take no body."""

BODY_BYTES_MAX = 1_000_000
"""More than any device asks for in one exchange; coap-client reads no longer file."""

UPLOAD_BYTES_MAX = 1_146
"""What fits a message of 1152 B beside header, token and marker; the path takes of it."""

LEAST_ACK_TIMEOUT_MS, MOST_ACK_TIMEOUT_MS = 1_000, 60_000
LEAST_RETRANSMIT, MOST_RETRANSMIT = 1, 10
MOST_ACK_RANDOM_FACTOR = 4.0
"""What `warifu-coap-client` takes (crates/lab/coap-client/src/config.rs)."""


@dataclass(frozen=True)
class Exchange:
    """One GET or PUT request and its response."""

    stack: CoapStack
    """Its message's type, and the transmission parameters of RFC 7252 section 4.8."""
    path: str
    response_body_bytes: int
    """Up to 1097 B come in one datagram with libcoap's MTU of 1152 B; longer ones come in blocks
    of 1024 B, a round trip each."""
    request_body_bytes: int = 0
    """A PUT in one message; 0 for a GET."""
    token_bytes: int = 1
    """As coap-client's first request has it, and the emulation's."""

    @staticmethod
    def of(case: Case) -> Exchange:
        """The exchange of a case. Raises LabError for a case of another protocol."""
        stack = case.stack
        if not isinstance(stack, CoapStack):
            raise LabError(f"stack.protocol is {stack.protocol}: expected coap")
        return Exchange(
            stack=stack,
            path=case.pattern.path,
            response_body_bytes=case.pattern.response_body,
            request_body_bytes=case.pattern.request_body,
        )

    @property
    def confirmable(self) -> bool:
        """CON, sent again until acknowledged, or NON, sent once."""
        return self.stack.message_type == "CON"

    @property
    def ack_timeout_ms(self) -> int:
        """ACK_TIMEOUT."""
        return self.stack.ack_timeout // 1_000_000

    @property
    def ack_random_factor(self) -> float:
        """ACK_RANDOM_FACTOR."""
        return self.stack.ack_random_factor_percent / 100

    @property
    def give_up_seconds(self) -> float:
        """When the sender of a CON gives up: MAX_TRANSMIT_WAIT of RFC 7252 section 4.8.2."""
        doublings: int = (1 << (self.stack.max_retransmit + 1)) - 1
        return self.ack_timeout_ms / 1_000 * doublings * self.ack_random_factor


def why_no_exchange(exchange: Exchange) -> str | None:
    """Why libcoap's programs cannot run an exchange, with what to change; None if they can."""
    if exchange.path.partition("?")[0] in OCCUPIED:
        return (
            f"pattern.path is {exchange.path}: coap-server has a resource of its own there; choose "
            'another path, such as "/sensors/temperature"'
        )
    if exchange.request_body_bytes > UPLOAD_BYTES_MAX:
        return (
            f"pattern.request_body is {exchange.request_body_bytes}: expected at most "
            f"{UPLOAD_BYTES_MAX} B, which fit one message of libcoap's; block-wise transfer (RFC "
            "7959) of requests is not run"
        )
    if exchange.request_body_bytes and exchange.response_body_bytes:
        return (
            f"pattern.response_body is {exchange.response_body_bytes}: coap-server answers a PUT "
            'without a body; set it to "0 B", or leave it out'
        )
    if not 0 <= exchange.response_body_bytes <= BODY_BYTES_MAX:
        return (
            f"pattern.response_body is {exchange.response_body_bytes}: expected 0 to "
            f"{BODY_BYTES_MAX} B"
        )
    if not LEAST_ACK_TIMEOUT_MS <= exchange.ack_timeout_ms <= MOST_ACK_TIMEOUT_MS:
        return (
            f"stack.ack_timeout is {exchange.ack_timeout_ms} ms: libcoap takes no less than "
            f"{LEAST_ACK_TIMEOUT_MS} ms, the lab no more than {MOST_ACK_TIMEOUT_MS} ms"
        )
    if not LEAST_RETRANSMIT <= exchange.stack.max_retransmit <= MOST_RETRANSMIT:
        return (
            f"stack.max_retransmit is {exchange.stack.max_retransmit}: libcoap takes "
            f"{LEAST_RETRANSMIT} or more, the lab at most {MOST_RETRANSMIT}"
        )
    if exchange.ack_random_factor > MOST_ACK_RANDOM_FACTOR:
        return (
            f"stack.ack_random_factor is {exchange.ack_random_factor}: the lab takes at most "
            f"{MOST_ACK_RANDOM_FACTOR}"
        )
    return None
