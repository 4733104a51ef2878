# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the lab knows of the stack of HTTPS."""

from __future__ import annotations

from warifu.case import HttpsStack, Tls
from warifu.lab.case import Cell
from warifu.lab.errors import LabError

CERTIFICATE_BYTES: dict[tuple[str, int], tuple[int, ...]] = {
    ("ecdsa_secp256r1", 1): (486,),
    ("ecdsa_secp256r1", 2): (496, 455),
    ("ecdsa_secp256r1", 3): (496, 465, 455),
    ("rsa-2048", 1): (882,),
    ("rsa-2048", 2): (892, 851),
    ("rsa-2048", 3): (892, 861, 851),
}
"""DER sizes of the chains that `warifu-tls pki` makes for either end, leaf first; as in
`crates/core/model/src/certificates.rs`, from which a study that states none has them."""


def https_of(cell: Cell) -> HttpsStack:
    """The stack of a cell. Raises LabError for any other, which `why_not_measurable` names
    before."""
    stack = cell.case.stack
    if not isinstance(stack, HttpsStack):
        raise LabError(f"stack.protocol is {stack.protocol}: expected https")
    return stack


def is_mutual(tls: Tls) -> bool:
    """Whether the client shows a certificate."""
    return tls.authentication == "mutual"
