// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signing and verifying in one call.

use cryptoki_sys::*;

use crate::bench::{Bench, mechanism};

/// Signs in one call.
pub fn sign(
    bench: &Bench,
    session: CK_SESSION_HANDLE,
    kind: CK_MECHANISM_TYPE,
    key: CK_OBJECT_HANDLE,
    data: &[u8],
) -> Result<[u8; 64], CK_RV> {
    let mut mechanism = mechanism(kind);
    match call!(bench, C_SignInit, session, &mut mechanism, key) {
        CKR_OK => {}
        rv => return Err(rv),
    }
    let (mut signature, mut length) = ([0; 64], 64);
    let data = (data.as_ptr().cast_mut(), data.len() as CK_ULONG);
    match call!(bench, C_Sign, session, data.0, data.1, signature.as_mut_ptr(), &mut length) {
        CKR_OK => Ok(signature),
        rv => Err(rv),
    }
}

/// Verifies in one call.
pub fn verify(
    bench: &Bench,
    session: CK_SESSION_HANDLE,
    kind: CK_MECHANISM_TYPE,
    key: CK_OBJECT_HANDLE,
    data: &[u8],
    signature: &[u8],
) -> CK_RV {
    let mut mechanism = mechanism(kind);
    assert_eq!(call!(bench, C_VerifyInit, session, &mut mechanism, key), CKR_OK);
    let data = (data.as_ptr().cast_mut(), data.len() as CK_ULONG);
    let signature = (signature.as_ptr().cast_mut(), signature.len() as CK_ULONG);
    call!(bench, C_Verify, session, data.0, data.1, signature.0, signature.1)
}
