// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bad calls, and what PKCS#11 2.40 section 5 says that each returns.

use std::ptr;

use cryptoki_sys::*;
use warifu_card::PinScope;

use crate::bench::{Bench, bytes, functions, mechanism, number};

/// A library that is not initialised: every function says so but those that need no library.
struct Bare {
    f: &'static CK_FUNCTION_LIST_3_0,
}

#[test]
fn nothing_works_before_c_initialize() {
    let alone = Bench::new(None);
    assert_eq!(call!(alone, C_Finalize, ptr::null_mut()), CKR_OK);
    let bare = Bare { f: functions() };
    let (null, mut count) = (ptr::null_mut(), 0);
    let (mut info, mut token) = (CK_INFO::default(), CK_TOKEN_INFO::default());
    let mut sha256 = mechanism(CKM_SHA256);
    for (name, rv) in [
        ("C_Finalize", call!(bare, C_Finalize, null)),
        ("C_GetInfo", call!(bare, C_GetInfo, &mut info)),
        ("C_GetSlotList", call!(bare, C_GetSlotList, 0, ptr::null_mut(), &mut count)),
        ("C_GetTokenInfo", call!(bare, C_GetTokenInfo, 0, &mut token)),
        ("C_OpenSession", call!(bare, C_OpenSession, 0, 4, null, None, &mut count)),
        ("C_CloseSession", call!(bare, C_CloseSession, 1)),
        ("C_Login", call!(bare, C_Login, 1, CKU_USER, ptr::null_mut(), 0)),
        ("C_FindObjectsInit", call!(bare, C_FindObjectsInit, 1, ptr::null_mut(), 0)),
        ("C_SignInit", call!(bare, C_SignInit, 1, ptr::null_mut(), 1)),
        ("C_Sign", call!(bare, C_Sign, 1, ptr::null_mut(), 0, ptr::null_mut(), &mut count)),
        ("C_DigestInit", call!(bare, C_DigestInit, 1, &mut sha256)),
        ("C_GenerateRandom", call!(bare, C_GenerateRandom, 1, ptr::null_mut(), 1)),
        ("C_EncryptInit", call!(bare, C_EncryptInit, 1, ptr::null_mut(), 1)),
    ] {
        assert_eq!(rv, CKR_CRYPTOKI_NOT_INITIALIZED, "{name}");
    }
    assert_eq!(call!(bare, C_Initialize, null), CKR_OK);
}

unsafe extern "C" fn create_mutex(_: *mut *mut std::ffi::c_void) -> CK_RV {
    CKR_OK
}

unsafe extern "C" fn use_mutex(_: *mut std::ffi::c_void) -> CK_RV {
    CKR_OK
}

#[test]
fn c_initialize_is_told_how_to_lock() {
    let bench = Bench::new(None);
    assert_eq!(call!(bench, C_Initialize, ptr::null_mut()), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    let (create, others) = (Some(create_mutex as _), Some(use_mutex as _));
    let some = CK_C_INITIALIZE_ARGS { CreateMutex: create, ..Default::default() };
    let all = CK_C_INITIALIZE_ARGS {
        DestroyMutex: others,
        LockMutex: others,
        UnlockMutex: others,
        ..some
    };
    let reserved = ptr::from_ref(&all).cast_mut().cast();
    for (name, args, expected) in [
        ("nothing given", CK_C_INITIALIZE_ARGS::default(), CKR_OK),
        ("one callback alone", some, CKR_ARGUMENTS_BAD),
        ("callbacks only", all, CKR_CANT_LOCK),
        ("or the system's", CK_C_INITIALIZE_ARGS { flags: CKF_OS_LOCKING_OK, ..all }, CKR_OK),
        (
            "reserved",
            CK_C_INITIALIZE_ARGS { pReserved: reserved, ..Default::default() },
            CKR_ARGUMENTS_BAD,
        ),
    ] {
        call!(bench, C_Finalize, ptr::null_mut());
        let mut args = args;
        let rv = call!(bench, C_Initialize, ptr::from_mut(&mut args).cast());
        assert_eq!(rv, expected, "{name}");
    }
    assert_eq!(call!(bench, C_Initialize, ptr::null_mut()), CKR_OK);
    assert_eq!(call!(bench, C_Finalize, reserved), CKR_ARGUMENTS_BAD);
}

/// What a row of the table works with: a read-only session, a read-write one, keys.
struct Things<'a> {
    bench: &'a Bench,
    session: CK_SESSION_HANDLE,
    rw: CK_SESSION_HANDLE,
    private: CK_OBJECT_HANDLE,
    public: CK_OBJECT_HANDLE,
    certificate: CK_OBJECT_HANDLE,
}

impl Things<'_> {
    fn sign_init(&self, kind: CK_MECHANISM_TYPE, key: CK_OBJECT_HANDLE) -> CK_RV {
        call!(self.bench, C_SignInit, self.session, &mut mechanism(kind), key)
    }

    fn verify_init(&self, kind: CK_MECHANISM_TYPE, key: CK_OBJECT_HANDLE) -> CK_RV {
        call!(self.bench, C_VerifyInit, self.session, &mut mechanism(kind), key)
    }

    fn sign(&self, room: &mut [u8], data: &[u8]) -> CK_RV {
        let mut length = room.len() as CK_ULONG;
        let data = (data.as_ptr().cast_mut(), data.len() as CK_ULONG);
        call!(self.bench, C_Sign, self.session, data.0, data.1, room.as_mut_ptr(), &mut length)
    }

    fn generate(
        &self,
        rw: bool,
        public: &mut [CK_ATTRIBUTE],
        private: &mut [CK_ATTRIBUTE],
    ) -> CK_RV {
        let (mut one, mut two) = (0, 0);
        call!(
            self.bench,
            C_GenerateKeyPair,
            if rw { self.rw } else { self.session },
            &mut mechanism(CKM_EC_KEY_PAIR_GEN),
            public.as_mut_ptr(),
            public.len() as CK_ULONG,
            private.as_mut_ptr(),
            private.len() as CK_ULONG,
            &mut one,
            &mut two,
        )
    }

    fn create(&self, rw: bool, attributes: &mut [CK_ATTRIBUTE]) -> CK_RV {
        let mut object = 0;
        let session = if rw { self.rw } else { self.session };
        let count = attributes.len() as CK_ULONG;
        call!(self.bench, C_CreateObject, session, attributes.as_mut_ptr(), count, &mut object)
    }

    fn derive(&self, kdf: CK_EC_KDF_TYPE, public: &mut [u8], key: CK_OBJECT_HANDLE) -> CK_RV {
        let mut parameters = CK_ECDH1_DERIVE_PARAMS {
            kdf,
            ulSharedDataLen: 0,
            pSharedData: ptr::null_mut(),
            ulPublicDataLen: public.len() as CK_ULONG,
            pPublicData: public.as_mut_ptr(),
        };
        let mut mechanism = CK_MECHANISM {
            mechanism: CKM_ECDH1_DERIVE,
            pParameter: ptr::from_mut(&mut parameters).cast(),
            ulParameterLen: size_of::<CK_ECDH1_DERIVE_PARAMS>() as CK_ULONG,
        };
        let mut secret = 0;
        call!(
            self.bench,
            C_DeriveKey,
            self.session,
            &mut mechanism,
            key,
            ptr::null_mut(),
            0,
            &mut secret
        )
    }
}

/// A bad call: what it is, the call, what it returns.
type Row = (&'static str, fn(&Things<'_>) -> CK_RV, CK_RV);

const NO_HANDLE: CK_ULONG = 0x7777;
const SECP384R1: [u8; 7] = [6, 5, 0x2b, 0x81, 4, 0, 0x22];
const SECP256R1: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

const SLOTS_AND_SESSIONS: &[Row] = &[
    (
        "slot list without a count",
        |t| call!(t.bench, C_GetSlotList, 0, ptr::null_mut(), ptr::null_mut()),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "slot list with no room",
        |t| call!(t.bench, C_GetSlotList, 0, &mut 0, &mut 0),
        CKR_BUFFER_TOO_SMALL,
    ),
    (
        "info of no slot",
        |t| call!(t.bench, C_GetSlotInfo, 9, &mut CK_SLOT_INFO::default()),
        CKR_SLOT_ID_INVALID,
    ),
    (
        "slot info to nowhere",
        |t| call!(t.bench, C_GetSlotInfo, 0, ptr::null_mut()),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "token of no slot",
        |t| call!(t.bench, C_GetTokenInfo, 9, &mut CK_TOKEN_INFO::default()),
        CKR_SLOT_ID_INVALID,
    ),
    ("library info to nowhere", |t| call!(t.bench, C_GetInfo, ptr::null_mut()), CKR_ARGUMENTS_BAD),
    (
        "mechanism list with no room",
        |t| call!(t.bench, C_GetMechanismList, 0, &mut 0, &mut 1),
        CKR_BUFFER_TOO_SMALL,
    ),
    (
        "unknown mechanism",
        |t| call!(t.bench, C_GetMechanismInfo, 0, CKM_AES_CBC, &mut CK_MECHANISM_INFO::default()),
        CKR_MECHANISM_INVALID,
    ),
    (
        "no slot event",
        |t| call!(t.bench, C_WaitForSlotEvent, CKF_DONT_BLOCK, &mut 0, ptr::null_mut()),
        CKR_NO_EVENT,
    ),
    (
        "session with no slot",
        |t| call!(t.bench, C_OpenSession, 9, CKF_SERIAL_SESSION, ptr::null_mut(), None, &mut 0),
        CKR_SLOT_ID_INVALID,
    ),
    (
        "parallel session",
        |t| call!(t.bench, C_OpenSession, 0, 0, ptr::null_mut(), None, &mut 0),
        CKR_SESSION_PARALLEL_NOT_SUPPORTED,
    ),
    (
        "session to nowhere",
        |t| {
            call!(
                t.bench,
                C_OpenSession,
                0,
                CKF_SERIAL_SESSION,
                ptr::null_mut(),
                None,
                ptr::null_mut()
            )
        },
        CKR_ARGUMENTS_BAD,
    ),
    ("close no session", |t| call!(t.bench, C_CloseSession, NO_HANDLE), CKR_SESSION_HANDLE_INVALID),
    ("close all of no slot", |t| call!(t.bench, C_CloseAllSessions, 9), CKR_SLOT_ID_INVALID),
    (
        "info of no session",
        |t| call!(t.bench, C_GetSessionInfo, NO_HANDLE, &mut CK_SESSION_INFO::default()),
        CKR_SESSION_HANDLE_INVALID,
    ),
    (
        "session info to nowhere",
        |t| call!(t.bench, C_GetSessionInfo, t.session, ptr::null_mut()),
        CKR_ARGUMENTS_BAD,
    ),
    ("login in no session", |t| t.bench.login(NO_HANDLE, "1234"), CKR_SESSION_HANDLE_INVALID),
    (
        "login as nobody",
        |t| call!(t.bench, C_Login, t.session, 7, ptr::null_mut(), 0),
        CKR_USER_TYPE_INVALID,
    ),
    (
        "login again for an operation",
        |t| call!(t.bench, C_Login, t.session, CKU_CONTEXT_SPECIFIC, ptr::null_mut(), 0),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    ("login twice", |t| t.bench.login(t.session, "1234"), CKR_USER_ALREADY_LOGGED_IN),
    ("logout of no session", |t| call!(t.bench, C_Logout, NO_HANDLE), CKR_SESSION_HANDLE_INVALID),
    (
        "function status",
        |t| call!(t.bench, C_GetFunctionStatus, t.session),
        CKR_FUNCTION_NOT_PARALLEL,
    ),
    ("cancel function", |t| call!(t.bench, C_CancelFunction, t.session), CKR_FUNCTION_NOT_PARALLEL),
    (
        "no such function",
        |t| call!(t.bench, C_EncryptInit, t.session, ptr::null_mut(), 0),
        CKR_FUNCTION_NOT_SUPPORTED,
    ),
    (
        "seed",
        |t| call!(t.bench, C_SeedRandom, t.session, [0].as_mut_ptr(), 1),
        CKR_RANDOM_SEED_NOT_SUPPORTED,
    ),
    (
        "random to nowhere",
        |t| call!(t.bench, C_GenerateRandom, t.session, ptr::null_mut(), 1),
        CKR_ARGUMENTS_BAD,
    ),
];

const OBJECTS: &[Row] = &[
    (
        "find without init",
        |t| call!(t.bench, C_FindObjects, t.session, &mut 0, 1, &mut 0),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "find end without init",
        |t| call!(t.bench, C_FindObjectsFinal, t.session),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "find in no session",
        |t| call!(t.bench, C_FindObjectsInit, NO_HANDLE, ptr::null_mut(), 0),
        CKR_SESSION_HANDLE_INVALID,
    ),
    (
        "find by nothing",
        |t| call!(t.bench, C_FindObjectsInit, t.session, ptr::null_mut(), 1),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "find twice",
        |t| {
            assert_eq!(call!(t.bench, C_FindObjectsInit, t.session, ptr::null_mut(), 0), CKR_OK);
            call!(t.bench, C_FindObjectsInit, t.session, ptr::null_mut(), 0)
        },
        CKR_OPERATION_ACTIVE,
    ),
    (
        "attribute of no object",
        |t| t.bench.get(t.session, NO_HANDLE, CKA_ID).unwrap_err(),
        CKR_OBJECT_HANDLE_INVALID,
    ),
    (
        "attributes to nowhere",
        |t| call!(t.bench, C_GetAttributeValue, t.session, t.private, ptr::null_mut(), 1),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "size of no object",
        |t| call!(t.bench, C_GetObjectSize, t.session, NO_HANDLE, &mut 0),
        CKR_OBJECT_HANDLE_INVALID,
    ),
    (
        "destroy no object",
        |t| call!(t.bench, C_DestroyObject, t.rw, NO_HANDLE),
        CKR_OBJECT_HANDLE_INVALID,
    ),
    (
        "destroy while reading only",
        |t| call!(t.bench, C_DestroyObject, t.session, t.private),
        CKR_SESSION_READ_ONLY,
    ),
    (
        "destroy what the card keeps",
        |t| call!(t.bench, C_DestroyObject, t.rw, t.private),
        CKR_ACTION_PROHIBITED,
    ),
    (
        "change what the card keeps",
        |t| {
            call!(
                t.bench,
                C_SetAttributeValue,
                t.rw,
                t.private,
                [bytes(CKA_LABEL, &mut [1])].as_mut_ptr(),
                1
            )
        },
        CKR_ACTION_PROHIBITED,
    ),
    (
        "change while reading only",
        |t| {
            call!(
                t.bench,
                C_SetAttributeValue,
                t.session,
                t.private,
                [bytes(CKA_LABEL, &mut [1])].as_mut_ptr(),
                1
            )
        },
        CKR_SESSION_READ_ONLY,
    ),
    (
        "copy",
        |t| call!(t.bench, C_CopyObject, t.rw, t.public, ptr::null_mut(), 0, &mut 0),
        CKR_ACTION_PROHIBITED,
    ),
    (
        "create without class",
        |t| t.create(true, &mut [bytes(CKA_LABEL, &mut [1])]),
        CKR_TEMPLATE_INCOMPLETE,
    ),
    (
        "create on the token, reading only",
        |t| {
            t.create(
                false,
                &mut [number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }), bytes(CKA_TOKEN, &mut [1])],
            )
        },
        CKR_SESSION_READ_ONLY,
    ),
    (
        "create on the token",
        |t| {
            t.create(
                true,
                &mut [number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }), bytes(CKA_TOKEN, &mut [1])],
            )
        },
        CKR_TOKEN_WRITE_PROTECTED,
    ),
    (
        "create a private key",
        |t| t.create(true, &mut [number(CKA_CLASS, &mut { CKO_PRIVATE_KEY })]),
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "create with a class of a byte",
        |t| t.create(true, &mut [bytes(CKA_CLASS, &mut [1])]),
        CKR_ATTRIBUTE_VALUE_INVALID,
    ),
    (
        "create with two classes",
        |t| t.create(true, &mut [number(CKA_CLASS, &mut 1), number(CKA_CLASS, &mut 2)]),
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "create a public key without point",
        |t| {
            t.create(
                true,
                &mut [
                    number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }),
                    number(CKA_KEY_TYPE, &mut { CKK_EC }),
                    bytes(CKA_EC_PARAMS, &mut { SECP256R1 }),
                ],
            )
        },
        CKR_TEMPLATE_INCOMPLETE,
    ),
    (
        "create a public key off its curve",
        |t| {
            t.create(
                true,
                &mut [
                    number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }),
                    number(CKA_KEY_TYPE, &mut { CKK_EC }),
                    bytes(CKA_EC_PARAMS, &mut { SECP256R1 }),
                    bytes(CKA_EC_POINT, &mut [4; 65]),
                ],
            )
        },
        CKR_ATTRIBUTE_VALUE_INVALID,
    ),
    (
        "create a public key of another curve",
        |t| {
            t.create(
                true,
                &mut [
                    number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }),
                    number(CKA_KEY_TYPE, &mut { CKK_EC }),
                    bytes(CKA_EC_PARAMS, &mut { SECP384R1 }),
                    bytes(CKA_EC_POINT, &mut [4; 97]),
                ],
            )
        },
        CKR_CURVE_NOT_SUPPORTED,
    ),
    (
        "create a public key with a modulus",
        |t| {
            t.create(
                true,
                &mut [
                    number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }),
                    number(CKA_KEY_TYPE, &mut { CKK_EC }),
                    bytes(CKA_MODULUS, &mut [1]),
                ],
            )
        },
        CKR_ATTRIBUTE_TYPE_INVALID,
    ),
    (
        "create a trusted public key",
        |t| {
            t.create(
                true,
                &mut [
                    number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }),
                    number(CKA_KEY_TYPE, &mut { CKK_EC }),
                    bytes(CKA_TRUSTED, &mut [1]),
                ],
            )
        },
        CKR_ATTRIBUTE_READ_ONLY,
    ),
];

const OPERATIONS: &[Row] = &[
    (
        "sign without mechanism",
        |t| call!(t.bench, C_SignInit, t.session, ptr::null_mut(), t.private),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "sign with no mechanism of ours",
        |t| t.sign_init(CKM_SHA256_RSA_PKCS, t.private),
        CKR_MECHANISM_INVALID,
    ),
    (
        "sign with a digest's mechanism",
        |t| t.sign_init(CKM_SHA256, t.private),
        CKR_MECHANISM_INVALID,
    ),
    (
        "sign with a parameter",
        |t| {
            let mut mechanism = CK_MECHANISM {
                pParameter: [1_u8].as_mut_ptr().cast(),
                ulParameterLen: 1,
                ..mechanism(CKM_ECDSA)
            };
            call!(t.bench, C_SignInit, t.session, &mut mechanism, t.private)
        },
        CKR_MECHANISM_PARAM_INVALID,
    ),
    ("sign with no key", |t| t.sign_init(CKM_ECDSA, NO_HANDLE), CKR_KEY_HANDLE_INVALID),
    ("sign with a public key", |t| t.sign_init(CKM_ECDSA, t.public), CKR_KEY_TYPE_INCONSISTENT),
    (
        "sign with a certificate",
        |t| t.sign_init(CKM_ECDSA, t.certificate),
        CKR_KEY_TYPE_INCONSISTENT,
    ),
    ("sign without init", |t| t.sign(&mut [0; 64], b"x"), CKR_OPERATION_NOT_INITIALIZED),
    (
        "sign twice",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            t.sign_init(CKM_ECDSA, t.private)
        },
        CKR_OPERATION_ACTIVE,
    ),
    (
        "sign nothing",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            t.sign(&mut [0; 64], b"")
        },
        CKR_DATA_LEN_RANGE,
    ),
    (
        "sign into too little",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            t.sign(&mut [0; 63], b"x")
        },
        CKR_BUFFER_TOO_SMALL,
    ),
    (
        "too little ends nothing",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            t.sign(&mut [0; 63], b"x");
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OK,
    ),
    (
        "a signature ends",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            assert_eq!(t.sign(&mut [0; 64], b"x"), CKR_OK);
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "bad arguments end a signature",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            let rv = call!(
                t.bench,
                C_Sign,
                t.session,
                ptr::null_mut(),
                1,
                ptr::null_mut(),
                ptr::null_mut()
            );
            assert_eq!(rv, CKR_ARGUMENTS_BAD);
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "one part ends what parts began",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA_SHA256, t.private), CKR_OK);
            assert_eq!(call!(t.bench, C_SignUpdate, t.session, ptr::null_mut(), 0), CKR_OK);
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "a null mechanism cancels",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            call!(t.bench, C_SignInit, t.session, ptr::null_mut(), 0)
        },
        CKR_OK,
    ),
    (
        "cancel all",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            assert_eq!(call!(t.bench, C_SessionCancel, t.session, CKF_SIGN), CKR_OK);
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "update without init",
        |t| call!(t.bench, C_SignUpdate, t.session, ptr::null_mut(), 0),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "final without init",
        |t| call!(t.bench, C_SignFinal, t.session, ptr::null_mut(), &mut 0),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "verify with a private key",
        |t| t.verify_init(CKM_ECDSA, t.private),
        CKR_KEY_TYPE_INCONSISTENT,
    ),
    ("verify with no key", |t| t.verify_init(CKM_ECDSA, NO_HANDLE), CKR_KEY_HANDLE_INVALID),
    (
        "verify a short signature",
        |t| {
            assert_eq!(t.verify_init(CKM_ECDSA, t.public), CKR_OK);
            call!(t.bench, C_Verify, t.session, [1].as_mut_ptr(), 1, [0; 64].as_mut_ptr(), 63)
        },
        CKR_SIGNATURE_LEN_RANGE,
    ),
    (
        "verify zeros",
        |t| {
            assert_eq!(t.verify_init(CKM_ECDSA, t.public), CKR_OK);
            call!(t.bench, C_Verify, t.session, [1].as_mut_ptr(), 1, [0; 64].as_mut_ptr(), 64)
        },
        CKR_SIGNATURE_INVALID,
    ),
    (
        "digest with a signature's mechanism",
        |t| call!(t.bench, C_DigestInit, t.session, &mut mechanism(CKM_ECDSA)),
        CKR_MECHANISM_INVALID,
    ),
    (
        "digest without init",
        |t| call!(t.bench, C_Digest, t.session, ptr::null_mut(), 0, ptr::null_mut(), &mut 0),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "digest a private key",
        |t| {
            assert_eq!(call!(t.bench, C_DigestInit, t.session, &mut mechanism(CKM_SHA256)), CKR_OK);
            call!(t.bench, C_DigestKey, t.session, t.private)
        },
        CKR_KEY_INDIGESTIBLE,
    ),
];

const KEYS: &[Row] = &[
    ("generate without curve", |t| t.generate(true, &mut [], &mut []), CKR_TEMPLATE_INCOMPLETE),
    (
        "generate on another curve",
        |t| t.generate(true, &mut [bytes(CKA_EC_PARAMS, &mut { SECP384R1 })], &mut []),
        CKR_CURVE_NOT_SUPPORTED,
    ),
    (
        "generate for RSA",
        |t| {
            t.generate(
                true,
                &mut [
                    bytes(CKA_EC_PARAMS, &mut { SECP256R1 }),
                    number(CKA_KEY_TYPE, &mut { CKK_RSA }),
                ],
                &mut [],
            )
        },
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "generate two private keys",
        |t| {
            t.generate(
                true,
                &mut [
                    bytes(CKA_EC_PARAMS, &mut { SECP256R1 }),
                    number(CKA_CLASS, &mut { CKO_PRIVATE_KEY }),
                ],
                &mut [],
            )
        },
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "generate what may leave",
        |t| {
            t.generate(
                true,
                &mut [bytes(CKA_EC_PARAMS, &mut { SECP256R1 })],
                &mut [bytes(CKA_EXTRACTABLE, &mut [1])],
            )
        },
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "generate with no flag",
        |t| {
            t.generate(
                true,
                &mut [bytes(CKA_EC_PARAMS, &mut { SECP256R1 })],
                &mut [bytes(CKA_SENSITIVE, &mut [2])],
            )
        },
        CKR_ATTRIBUTE_VALUE_INVALID,
    ),
    (
        "generate half on the token",
        |t| {
            t.generate(
                true,
                &mut [bytes(CKA_EC_PARAMS, &mut { SECP256R1 }), bytes(CKA_TOKEN, &mut [1])],
                &mut [bytes(CKA_TOKEN, &mut [0])],
            )
        },
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "generate on the token, reading only",
        |t| {
            t.generate(
                false,
                &mut [bytes(CKA_EC_PARAMS, &mut { SECP256R1 }), bytes(CKA_TOKEN, &mut [1])],
                &mut [],
            )
        },
        CKR_SESSION_READ_ONLY,
    ),
    (
        "generate in a place that the card does not have",
        |t| {
            t.generate(
                true,
                &mut [
                    bytes(CKA_EC_PARAMS, &mut { SECP256R1 }),
                    bytes(CKA_TOKEN, &mut [1]),
                    bytes(CKA_ID, &mut [0x55]),
                ],
                &mut [],
            )
        },
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "generate with a value",
        |t| {
            t.generate(
                true,
                &mut [bytes(CKA_EC_PARAMS, &mut { SECP256R1 })],
                &mut [bytes(CKA_VALUE, &mut [1])],
            )
        },
        CKR_ATTRIBUTE_TYPE_INVALID,
    ),
    (
        "derive with a function",
        |t| t.derive(CKD_SHA256_KDF, &mut [4; 65], t.private),
        CKR_MECHANISM_PARAM_INVALID,
    ),
    (
        "derive with no point",
        |t| t.derive(CKD_NULL, &mut [4; 10], t.private),
        CKR_MECHANISM_PARAM_INVALID,
    ),
    (
        "derive with a point off the curve",
        |t| t.derive(CKD_NULL, &mut [4; 65], t.private),
        CKR_MECHANISM_PARAM_INVALID,
    ),
    (
        "derive from a public key",
        |t| t.derive(CKD_NULL, &mut [4; 65], t.public),
        CKR_KEY_TYPE_INCONSISTENT,
    ),
    ("derive from no key", |t| t.derive(CKD_NULL, &mut [4; 65], NO_HANDLE), CKR_KEY_HANDLE_INVALID),
    (
        "derive without parameter",
        |t| {
            call!(
                t.bench,
                C_DeriveKey,
                t.session,
                &mut mechanism(CKM_ECDH1_DERIVE),
                t.private,
                ptr::null_mut(),
                0,
                &mut 0
            )
        },
        CKR_MECHANISM_PARAM_INVALID,
    ),
];

#[test]
fn bad_calls_return_what_the_standard_names() {
    let bench = Bench::new(Some(PinScope::EveryKey));
    for rows in [SLOTS_AND_SESSIONS, OBJECTS, OPERATIONS, KEYS] {
        for (name, bad_call, expected) in rows {
            // Each row begins with sessions without operations.
            let (session, rw) = (bench.open(0), bench.open(CKF_RW_SESSION));
            let logged_in = bench.login(session, crate::bench::PIN);
            assert!([CKR_OK, CKR_USER_ALREADY_LOGGED_IN].contains(&logged_in));
            let private = bench.one(session, CKO_PRIVATE_KEY, 1);
            let public = bench.one(session, CKO_PUBLIC_KEY, 1);
            let certificate = bench.one(session, CKO_CERTIFICATE, 1);
            let things = Things { bench: &bench, session, rw, private, public, certificate };
            let rv = bad_call(&things);
            assert_eq!(rv, *expected, "{name}: {rv:#x} instead of {expected:#x}");
            call!(bench, C_CloseAllSessions, 0);
        }
    }
}

#[test]
fn without_login_private_keys_are_out_of_reach() {
    let bench = Bench::new(Some(PinScope::EveryKey));
    let session = bench.open(CKF_RW_SESSION);
    let (mut params, mut one, mut two) = (SECP256R1, 0, 0);
    let mut public = [bytes(CKA_EC_PARAMS, &mut params)];
    let mut mechanism = mechanism(CKM_EC_KEY_PAIR_GEN);
    let place = public.as_mut_ptr();
    let null = ptr::null_mut();
    let rv = call!(
        bench,
        C_GenerateKeyPair,
        session,
        &mut mechanism,
        place,
        1,
        null,
        0,
        &mut one,
        &mut two
    );
    assert_eq!(rv, CKR_USER_NOT_LOGGED_IN);
    assert_eq!(call!(bench, C_Logout, session), CKR_USER_NOT_LOGGED_IN);
}

#[test]
fn interfaces_are_found_by_name_and_version() {
    let bench = Bench::new(None);
    let mut count = 0;
    assert_eq!(call!(bench, C_GetInterfaceList, ptr::null_mut(), &mut count), CKR_OK);
    assert_eq!(count, 2);
    let get = |name: Option<&std::ffi::CStr>, version: Option<(u8, u8)>, flags| {
        let mut version = version.map(|(major, minor)| CK_VERSION { major, minor });
        let name = name.map_or(ptr::null_mut(), |name| name.as_ptr().cast_mut().cast());
        let version = version.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
        let mut interface = ptr::null_mut();
        call!(bench, C_GetInterface, name, version, &mut interface, flags)
    };
    for (name, version, flags, expected) in [
        (None, None, 0, CKR_OK),
        (Some(c"PKCS 11"), Some((2, 40)), 0, CKR_OK),
        (Some(c"PKCS 11"), Some((3, 0)), 0, CKR_OK),
        (Some(c"PKCS 11"), Some((3, 2)), 0, CKR_ARGUMENTS_BAD),
        (Some(c"Vendor"), None, 0, CKR_ARGUMENTS_BAD),
        (None, None, CKF_INTERFACE_FORK_SAFE, CKR_ARGUMENTS_BAD),
    ] {
        assert_eq!(get(name, version, flags), expected, "{name:?} {version:?}");
    }
}
