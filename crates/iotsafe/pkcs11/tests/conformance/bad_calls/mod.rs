// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bad calls, and the value that each returns by PKCS#11 2.40 section 5.

mod general_purpose;
mod key_management;
mod message_digesting;
mod object_management;
mod session_management;
mod signing;
mod slot_token_management;
mod verifying;

use std::ptr;

use cryptoki_sys::*;
use warifu_card::PinScope;

use crate::bench::{Bench, PIN, bytes, mechanism};

const NO_HANDLE: CK_ULONG = 0x7777;
const SECP384R1: [u8; 7] = [6, 5, 0x2b, 0x81, 4, 0, 0x22];
const SECP256R1: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

/// What a row of the table works with: a read-only session, a read-write one, keys.
struct Fixture<'a> {
    bench: &'a Bench,
    session: CK_SESSION_HANDLE,
    rw: CK_SESSION_HANDLE,
    private: CK_OBJECT_HANDLE,
    public: CK_OBJECT_HANDLE,
    certificate: CK_OBJECT_HANDLE,
}

impl Fixture<'_> {
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
type Row = (&'static str, fn(&Fixture<'_>) -> CK_RV, CK_RV);

#[test]
fn return_values_of_bad_calls() {
    let bench = Bench::new(Some(PinScope::EveryKey));
    for rows in [
        general_purpose::ROWS,
        slot_token_management::ROWS,
        session_management::ROWS,
        object_management::ROWS,
        message_digesting::ROWS,
        signing::ROWS,
        verifying::ROWS,
        key_management::ROWS,
    ] {
        for (name, bad_call, expected) in rows {
            // New sessions for each row, without operations.
            let (session, rw) = (bench.open(0), bench.open(CKF_RW_SESSION));
            let logged_in = bench.login(session, PIN);
            assert!([CKR_OK, CKR_USER_ALREADY_LOGGED_IN].contains(&logged_in));
            let private = bench.one(session, CKO_PRIVATE_KEY, 1);
            let public = bench.one(session, CKO_PUBLIC_KEY, 1);
            let certificate = bench.one(session, CKO_CERTIFICATE, 1);
            let fixture = Fixture { bench: &bench, session, rw, private, public, certificate };
            let rv = bad_call(&fixture);
            assert_eq!(rv, *expected, "{name}: {rv:#x} instead of {expected:#x}");
            call!(bench, C_CloseAllSessions, 0);
        }
    }
}

#[test]
fn private_keys_without_login() {
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
