# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A little of PC/SC: what it takes to send a card some APDUs. The work is libpcsclite's."""

from __future__ import annotations

import ctypes
import ctypes.util
from types import TracebackType

_SCOPE_SYSTEM = 2
_SHARE_SHARED = 2
_PROTOCOL_T0_OR_T1 = 3
_LEAVE_CARD = 0
_RESET_CARD = 1
#: The longest answer: extended lengths and the status word.
_ANSWER_MAX_BYTES = 65536 + 2

# Codes of pcsclite.h.
NO_SMARTCARD = 0x8010000C
NO_SERVICE = 0x8010001D
NO_READERS = 0x8010002E
UNRESPONSIVE = 0x80100066
REMOVED = 0x80100069

_DWORD = ctypes.c_ulong
_HANDLE = ctypes.c_long


class _IoRequest(ctypes.Structure):
    """SCARD_IO_REQUEST: the protocol in use."""

    _fields_ = (("protocol", _DWORD), ("length", _DWORD))


class PcscError(Exception):
    """A call of PC/SC failed; `code` is the library's."""

    def __init__(self, call: str, code: int, text: str) -> None:
        """Names the call and what the library says of the code."""
        super().__init__(f"{call}: {text} ({code:#010x})")
        self.code = code


class LibraryMissing(Exception):  # noqa: N818 - what happened, not what it is
    """libpcsclite is not installed."""


class Pcsc:
    """A connection to pcscd, closed at the end of the `with` block."""

    def __init__(self) -> None:
        """Connects; LibraryMissing without libpcsclite, PcscError without pcscd."""
        name = ctypes.util.find_library("pcsclite") or "libpcsclite.so.1"
        try:
            self._library = ctypes.CDLL(name)
        except OSError as error:
            raise LibraryMissing(str(error)) from None
        self._library.pcsc_stringify_error.restype = ctypes.c_char_p
        self._context = _HANDLE()
        self._call("SCardEstablishContext", _DWORD(_SCOPE_SYSTEM), None, None,
                   ctypes.byref(self._context))  # fmt: skip

    def __enter__(self) -> Pcsc:
        """Nothing more."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Lets go of pcscd."""
        self._library.SCardReleaseContext(self._context)

    def readers(self) -> list[str]:
        """The names of all readers; PcscError NO_READERS if there is none."""
        length = _DWORD(0)
        self._call("SCardListReaders", self._context, None, None, ctypes.byref(length))
        names = ctypes.create_string_buffer(length.value)
        self._call("SCardListReaders", self._context, None, names, ctypes.byref(length))
        return [name.decode() for name in names.raw[: length.value].split(b"\0") if name]

    def connect(self, reader: str) -> Card:
        """The card in a reader, shared with other programs; PcscError NO_SMARTCARD without one."""
        handle, protocol = _HANDLE(), _DWORD()
        self._call("SCardConnect", self._context, reader.encode(), _DWORD(_SHARE_SHARED),
                   _DWORD(_PROTOCOL_T0_OR_T1), ctypes.byref(handle),
                   ctypes.byref(protocol))  # fmt: skip
        return Card(self, handle, protocol.value)

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments) & 0xFFFFFFFF
        if code:
            text = self._library.pcsc_stringify_error(ctypes.c_long(code))
            raise PcscError(name, code, (text or b"").decode().rstrip("."))


class Card:
    """A card in a reader."""

    def __init__(self, pcsc: Pcsc, handle: ctypes.c_long, protocol: int) -> None:
        """As `Pcsc.connect` makes it."""
        self._pcsc, self._handle = pcsc, handle
        self._request = _IoRequest(protocol, ctypes.sizeof(_IoRequest))
        self._room = ctypes.create_string_buffer(_ANSWER_MAX_BYTES)

    def transmit(self, apdu: bytes) -> bytes:
        """The response APDU: data, then the status word."""
        length = _DWORD(len(self._room))
        self._pcsc._call("SCardTransmit", self._handle, ctypes.byref(self._request), apdu,
                         _DWORD(len(apdu)), None, self._room, ctypes.byref(length))  # fmt: skip
        return ctypes.string_at(self._room, length.value)

    def disconnect(self, *, reset: bool = False) -> None:
        """Gives the card back, perhaps reset."""
        self._pcsc._call("SCardDisconnect", self._handle,
                         _DWORD(_RESET_CARD if reset else _LEAVE_CARD))  # fmt: skip
