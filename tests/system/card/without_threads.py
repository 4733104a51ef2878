# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A program that allows its PKCS#11 module no threads, as GnuTLS: prints what C_Initialize and
C_GetSlotList return, how many slots have a token, what C_GenerateRandom returns, and how many
threads there are."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

CKF_LIBRARY_CANT_CREATE_OS_THREADS = 1
CKF_SERIAL_SESSION = 4


class Arguments(ctypes.Structure):
    """CK_C_INITIALIZE_ARGS."""

    _fields_ = (
        ("mutexes", ctypes.c_void_p * 4),
        ("flags", ctypes.c_ulong),
        ("reserved", ctypes.c_void_p),
    )


module = ctypes.CDLL(sys.argv[1])
started = module.C_Initialize(ctypes.byref(Arguments(flags=CKF_LIBRARY_CANT_CREATE_OS_THREADS)))
slots, count, session = (ctypes.c_ulong * 8)(), ctypes.c_ulong(8), ctypes.c_ulong()
listed = module.C_GetSlotList(ctypes.c_ubyte(1), slots, ctypes.byref(count))
opened = module.C_OpenSession(
    slots[0], ctypes.c_ulong(CKF_SERIAL_SESSION), None, None, ctypes.byref(session)
)
random = module.C_GenerateRandom(session, ctypes.create_string_buffer(8), ctypes.c_ulong(8))
threads = len(list(Path("/proc/self/task").iterdir()))
module.C_Finalize(None)
print(started, listed, count.value, opened, random, threads)
