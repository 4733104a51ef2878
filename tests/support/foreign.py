# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What programs that the module was not made for are held to."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from support.programs import DEVICE, Authority, Device, Running, free_port, run

CARD = "pkcs11:token=warifu;object=client;type=private"
"""The card's key (RFC 7512)."""
MESSAGE = b"hello"


class Server:
    """OpenSSL's server, which asks for the card's certificate, until the end of the block."""

    def __init__(
        self, device: Device, authority: Authority, operator: tuple[Path, Path], *more: object
    ) -> None:
        certificate, key = operator
        self.port = free_port()
        self._server = Running(
            "openssl", "s_server", "-accept", f"127.0.0.1:{self.port}", "-cert", certificate,
            "-key", key, "-CAfile", authority.certificate, "-Verify", "1", "-verify_return_error",
            "-www", *more, environment=device.environment, log=device.folder / "s_server",
        )  # fmt: skip

    def __enter__(self) -> Server:
        self._server.until("ACCEPT")
        return self

    def knows_device(self) -> None:
        """Whoever came has shown the card's certificate and signed."""
        assert f"CN = {DEVICE}" in self._server.until(r"depth=0.*").group()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.__exit__(kind, error, trace)


def verified(device: Device, signature: bytes) -> bool:
    """Whether this is the card's signature (DER) of `MESSAGE`, as OpenSSL sees it."""
    folder = device.folder
    (folder / "message").write_bytes(MESSAGE)
    (folder / "der").write_bytes(signature)
    public = run(
        "openssl", "x509", "-in", device.certificate, "-pubkey", "-noout",
        environment=device.environment,
    )  # fmt: skip
    (folder / "public").write_text(public.stdout)
    done = run(
        "openssl", "dgst", "-sha256", "-verify", folder / "public", "-signature", folder / "der",
        folder / "message", environment=device.environment, check=False,
    )  # fmt: skip
    return done.stdout.strip() == "Verified OK"


def der(signature: bytes) -> bytes:
    """The two halves of a signature as PKCS#11 has it, in DER (RFC 3279, section 2.2.3)."""
    half = len(signature) // 2
    numbers = b"".join(map(_integer, (signature[:half], signature[half:])))
    return bytes([0x30, len(numbers)]) + numbers


def _integer(raw: bytes) -> bytes:
    value = raw.lstrip(b"\0") or b"\0"
    value = b"\0" + value if value[0] & 0x80 else value
    return bytes([0x02, len(value)]) + value
