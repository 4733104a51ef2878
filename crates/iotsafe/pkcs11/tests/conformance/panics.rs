// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A mistake of ours is that call's CKR_GENERAL_ERROR: the program goes on, and the calls after it
//! find no lock that is held and no turn that is taken.

use std::ptr;
use std::sync::atomic::Ordering;

use cryptoki_sys::*;

use crate::bench::{Bench, mechanism};

/// Runs a call while the way to the card panics.
fn mistaken(bench: &Bench, call: impl FnOnce() -> CK_RV) {
    bench.world.mistaken.store(true, Ordering::SeqCst);
    assert_eq!(call(), CKR_GENERAL_ERROR);
    bench.world.mistaken.store(false, Ordering::SeqCst);
}

#[test]
fn a_panic_is_its_calls_general_error_and_no_others() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    let key = bench.one(session, CKO_PRIVATE_KEY, 1);
    let (mut room, mut length) = ([0_u8; 64], 64);
    let mut ecdsa = mechanism(CKM_ECDSA);
    let mut data = *b"digest";
    let (text, place) = (data.as_mut_ptr(), room.as_mut_ptr());
    let mut sign = || call!(bench, C_Sign, session, text, 6, place, &mut length);
    let random = || call!(bench, C_GenerateRandom, session, place, 8);

    mistaken(&bench, random);
    assert_eq!(random(), CKR_OK);
    assert_eq!(call!(bench, C_SignInit, session, &mut ecdsa, key), CKR_OK);
    mistaken(&bench, &mut sign);
    // Nobody knows how far it came; the session can be used again.
    assert_eq!(call!(bench, C_SessionCancel, session, CKF_SIGN), CKR_OK);
    assert_eq!(call!(bench, C_SignInit, session, &mut ecdsa, key), CKR_OK);
    assert_eq!(sign(), CKR_OK);
    let mut info = CK_TOKEN_INFO::default();
    assert_eq!(call!(bench, C_GetTokenInfo, 0, &mut info), CKR_OK);
    // At the end the card is given its channel back; a mistake there is no hang either.
    mistaken(&bench, || call!(bench, C_Finalize, ptr::null_mut()));
    assert_eq!(call!(bench, C_Initialize, ptr::null_mut()), CKR_OK);
}
