// SPDX-License-Identifier: Apache-2.0 OR MIT
// Signs "hello" with the card's key through pkcs11js; prints the signature in hexadecimal.
const crypto = require("crypto");
const pkcs11js = require("pkcs11js");

const [modulePath, pin] = process.argv.slice(2);
const card = new pkcs11js.PKCS11();
card.load(modulePath);
card.C_Initialize();
const [slot] = card.C_GetSlotList(true);
const session = card.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION);
card.C_Login(session, pkcs11js.CKU_USER, pin);
card.C_FindObjectsInit(session, [
  { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_PRIVATE_KEY },
  { type: pkcs11js.CKA_LABEL, value: "client" },
]);
const key = card.C_FindObjects(session);
card.C_FindObjectsFinal(session);
card.C_SignInit(session, { mechanism: pkcs11js.CKM_ECDSA }, key);
const digest = crypto.createHash("sha256").update("hello").digest();
console.log(card.C_Sign(session, digest, Buffer.alloc(64)).toString("hex"));
card.C_CloseSession(session);
card.C_Finalize();
