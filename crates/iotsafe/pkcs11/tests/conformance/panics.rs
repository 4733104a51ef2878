// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A panic is a CKR_GENERAL_ERROR of one call: the program continues, and later calls find no lock
//! held and no turn taken.

use std::ptr;
use std::sync::atomic::Ordering;

use cryptoki_sys::*;

use crate::bench::{Bench, mechanism};

/// Runs a call while the transport to the card panics.
fn panicking(bench: &Bench, call: impl FnOnce() -> CK_RV) {
    bench.world.panics.store(true, Ordering::SeqCst);
    assert_eq!(call(), CKR_GENERAL_ERROR);
    bench.world.panics.store(false, Ordering::SeqCst);
}

#[test]
fn panic_is_a_general_error_of_its_call_only() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    let key = bench.one(session, CKO_PRIVATE_KEY, 1);
    let (mut room, mut length) = ([0_u8; 64], 64);
    let mut ecdsa = mechanism(CKM_ECDSA);
    let mut data = *b"digest";
    let (text, place) = (data.as_mut_ptr(), room.as_mut_ptr());
    let mut sign = || call!(bench, C_Sign, session, text, 6, place, &mut length);
    let random = || call!(bench, C_GenerateRandom, session, place, 8);

    panicking(&bench, random);
    assert_eq!(random(), CKR_OK);
    assert_eq!(call!(bench, C_SignInit, session, &mut ecdsa, key), CKR_OK);
    panicking(&bench, &mut sign);
    // The session can be used again.
    assert_eq!(call!(bench, C_SessionCancel, session, CKF_SIGN), CKR_OK);
    assert_eq!(call!(bench, C_SignInit, session, &mut ecdsa, key), CKR_OK);
    assert_eq!(sign(), CKR_OK);
    let mut info = CK_TOKEN_INFO::default();
    assert_eq!(call!(bench, C_GetTokenInfo, 0, &mut info), CKR_OK);
    // C_Finalize closes the channel; a panic there does not hang either.
    panicking(&bench, || call!(bench, C_Finalize, ptr::null_mut()));
    assert_eq!(call!(bench, C_Initialize, ptr::null_mut()), CKR_OK);
}
