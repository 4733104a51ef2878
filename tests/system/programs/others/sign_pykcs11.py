# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Signs "hello" with the card's key through PyKCS11; prints the signature in hexadecimal."""

import hashlib
import sys

import PyKCS11

library = PyKCS11.PyKCS11Lib()
library.load(sys.argv[1])
session = library.openSession(library.getSlotList(tokenPresent=True)[0])
session.login(sys.argv[2])
wanted = [(PyKCS11.CKA_CLASS, PyKCS11.CKO_PRIVATE_KEY), (PyKCS11.CKA_LABEL, "client")]
key = session.findObjects(wanted)[0]
mechanism = PyKCS11.Mechanism(PyKCS11.CKM_ECDSA, None)
print(bytes(session.sign(key, hashlib.sha256(b"hello").digest(), mechanism)).hex())
session.logout()
session.closeSession()
