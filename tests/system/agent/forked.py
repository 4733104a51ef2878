# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Loads a PKCS#11 module, forks, and has both processes draw random bytes from the token."""

import ctypes
import os
import sys

module = ctypes.CDLL(sys.argv[1])
ulong = ctypes.c_ulong
SERIAL_SESSION = 4


def drawn() -> bytes:
    """Random bytes in a session of its own."""
    session, room = ulong(), ctypes.create_string_buffer(16)
    opened = module.C_OpenSession(
        ulong(0), ulong(SERIAL_SESSION), None, None, ctypes.byref(session)
    )
    assert opened == 0, hex(opened)
    done = module.C_GenerateRandom(session, room, ulong(16))
    assert done == 0, hex(done)
    assert module.C_CloseSession(session) == 0
    return room.raw


assert module.C_Initialize(None) == 0
before = drawn()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    # PKCS#11 2.40 section 5.4: the child initialises for itself.
    assert module.C_Initialize(None) == 0
    os.write(writer, drawn())
    print("child ok", flush=True)
    os._exit(0)
os.waitpid(child, 0)
of_child = os.read(reader, 16)
after = drawn()
assert len({before, of_child, after}) == 3
print("parent ok")
