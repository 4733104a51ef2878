# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A program that forks while the module is in use, as servers do: `forked.py MODULE PIN CHILDREN`.

The parent signs in a thread all the while. Each child finds the module uninitialised, initialises
it for itself, logs in and signs; some fork again. Exit code 0 if every call did what it should.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from ctypes import POINTER, byref, c_char_p, c_ubyte, c_ulong, c_void_p

OK, NOT_INITIALIZED, ALREADY = 0, 0x190, 0x191
SERIAL_SESSION, USER = 4, 1
CLASS, PRIVATE_KEY = 0, 3
ECDSA_SHA256 = 0x1044


class Mechanism(ctypes.Structure):
    _fields_ = (("kind", c_ulong), ("parameter", c_void_p), ("length", c_ulong))


class Attribute(ctypes.Structure):
    _fields_ = (("kind", c_ulong), ("value", c_void_p), ("length", c_ulong))


def must(value: int, expected: int = OK) -> None:
    if value != expected:
        raise SystemExit(f"process {os.getpid()}: {value:#x}, expected {expected:#x}")


class Signer:
    """A session with the first private key."""

    def __init__(self, module: ctypes.CDLL, pin: bytes) -> None:
        self.module = module
        self.session = c_ulong()
        must(module.C_OpenSession(c_ulong(0), c_ulong(SERIAL_SESSION), None, None,
                                  byref(self.session)))  # fmt: skip
        must(module.C_Login(self.session, c_ulong(USER), c_char_p(pin), c_ulong(len(pin))))
        wanted = c_ulong(PRIVATE_KEY)
        template = Attribute(CLASS, ctypes.cast(byref(wanted), c_void_p), 8)
        must(module.C_FindObjectsInit(self.session, byref(template), c_ulong(1)))
        self.key, found = c_ulong(), c_ulong()
        must(module.C_FindObjects(self.session, byref(self.key), c_ulong(1), byref(found)))
        must(module.C_FindObjectsFinal(self.session))
        must(found.value, 1)

    def sign(self) -> None:
        mechanism = Mechanism(ECDSA_SHA256, None, 0)
        signature, length = (c_ubyte * 64)(), c_ulong(64)
        must(self.module.C_SignInit(self.session, byref(mechanism), self.key))
        must(self.module.C_Sign(self.session, c_char_p(b"text"), c_ulong(4), signature,
                                byref(length)))  # fmt: skip
        must(length.value, 64)


def child(module: ctypes.CDLL, pin: bytes, parents: Signer, depth: int) -> None:
    slots = c_ulong()
    must(module.C_GetSlotList(c_ubyte(0), None, byref(slots)), NOT_INITIALIZED)
    mechanism = Mechanism(ECDSA_SHA256, None, 0)
    must(module.C_SignInit(parents.session, byref(mechanism), parents.key), NOT_INITIALIZED)
    must(module.C_Initialize(None))
    must(module.C_Initialize(None), ALREADY)
    signer = Signer(module, pin)
    signer.sign()
    if depth:
        fork(module, pin, signer, depth - 1)
        signer.sign()
    must(module.C_Finalize(None))


def fork(module: ctypes.CDLL, pin: bytes, signer: Signer, depth: int) -> None:
    """One child, waited for: the card has four channels."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child(module, pin, signer, depth)
            code = 0
        except SystemExit as error:
            print(error, file=sys.stderr)
        finally:
            os._exit(code)
    must(os.waitpid(pid, 0)[1])


def main() -> None:
    path, pin, children = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
    module = ctypes.CDLL(path)
    for name in ("C_Initialize", "C_Finalize"):
        getattr(module, name).argtypes = (c_void_p,)
    module.C_SignInit.argtypes = (c_ulong, POINTER(Mechanism), c_ulong)
    must(module.C_Initialize(None))
    signer = Signer(module, pin)
    ended = threading.Event()

    def go_on() -> None:
        while not ended.is_set():
            signer.sign()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        for number in range(children):
            fork(module, pin, signer, number % 2)
    finally:
        ended.set()
        thread.join()
    signer.sign()
    must(module.C_Finalize(None))


if __name__ == "__main__":
    main()
