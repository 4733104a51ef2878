# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Signs in one thread and asks for token and keys in another until that has ended; prints how long
the signature and the longest answer took (ms), how often was asked, and how many keys there are."""

from __future__ import annotations

import ctypes
import sys
import threading
import time

CKA_CLASS, CKA_SIGN, CKO_PRIVATE_KEY, CKM_ECDSA = 0, 0x108, 3, 0x1041
CKF_OS_LOCKING_OK, CKF_SERIAL_SESSION, CKU_USER = 2, 4, 1
Number = ctypes.c_ulong


class Arguments(ctypes.Structure):
    """CK_C_INITIALIZE_ARGS."""

    _fields_ = (("mutexes", ctypes.c_void_p * 4), ("flags", Number), ("reserved", ctypes.c_void_p))


class Attribute(ctypes.Structure):
    """CK_ATTRIBUTE."""

    _fields_ = (("kind", Number), ("value", ctypes.c_void_p), ("length", Number))


module = ctypes.CDLL(sys.argv[1])


def ask(function: str, *arguments: object) -> None:
    """Calls a function of the module, which must return CKR_OK."""
    code = getattr(module, function)(*arguments)
    if code != 0:
        raise SystemExit(f"{function}: {code:#x}")


def opened() -> ctypes.c_ulong:
    session = Number()
    ask("C_OpenSession", slots[0], Number(CKF_SERIAL_SESSION), None, None, ctypes.byref(session))
    return session


def keys(session: ctypes.c_ulong) -> list[int]:
    """The token's private keys that sign."""
    kind, yes = Number(CKO_PRIVATE_KEY), ctypes.c_ubyte(1)
    wanted = (Attribute * 2)(
        Attribute(CKA_CLASS, ctypes.addressof(kind), ctypes.sizeof(kind)),
        Attribute(CKA_SIGN, ctypes.addressof(yes), 1),
    )
    found, count = (Number * 8)(), Number()
    ask("C_FindObjectsInit", session, wanted, Number(2))
    ask("C_FindObjects", session, found, Number(8), ctypes.byref(count))
    ask("C_FindObjectsFinal", session)
    return list(found[: count.value])


def token() -> bytes:
    """The token's label."""
    about = ctypes.create_string_buffer(1_000)
    ask("C_GetTokenInfo", slots[0], about)
    return about.raw[:32].rstrip()


took: list[float] = []


def sign() -> None:
    signature, length = ctypes.create_string_buffer(64), Number(64)
    start = time.monotonic()
    try:
        ask("C_Sign", signing, bytes(32), Number(32), signature, ctypes.byref(length))
        took.append(time.monotonic() - start)
    finally:
        done.set()


ask("C_Initialize", ctypes.byref(Arguments(flags=CKF_OS_LOCKING_OK)))
slots, slot_count = (Number * 8)(), Number(8)
ask("C_GetSlotList", ctypes.c_ubyte(1), slots, ctypes.byref(slot_count))
signing, other = opened(), opened()
pin = sys.argv[2].encode()
ask("C_Login", signing, Number(CKU_USER), pin, Number(len(pin)))
# From here on all is known, but that the card has signed.
first = (token(), keys(other))
mechanism = (ctypes.c_ulong * 3)(CKM_ECDSA, 0, 0)
ask("C_SignInit", signing, mechanism, Number(first[1][0]))
done = threading.Event()
thread = threading.Thread(target=sign)
thread.start()
longest, asked = 0.0, 0
while not done.is_set():
    start = time.monotonic()
    if (token(), keys(other)) != first:
        raise SystemExit("token or keys have changed")
    longest, asked = max(longest, time.monotonic() - start), asked + 1
thread.join()
print(f"{took[0] * 1000:.1f} {longest * 1000:.1f} {asked} {len(first[1])}")
