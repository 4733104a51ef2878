// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Session management (PKCS#11 2.40 section 5.6).

use std::ptr;
use std::sync::atomic::Ordering;

use cryptoki_sys::*;
use warifu_card::PinScope;

use crate::bench::{Bench, PIN, number};
use crate::sign_verify::sign;

#[test]
fn login_and_logout() {
    let bench = Bench::new(Some(PinScope::Signing));
    let session = bench.open(0);
    let state = |session| {
        let mut info = CK_SESSION_INFO::default();
        assert_eq!(call!(bench, C_GetSessionInfo, session, &mut info), CKR_OK);
        info.state
    };
    let mut class = CKO_PRIVATE_KEY;
    assert!(bench.find(session, &mut [number(CKA_CLASS, &mut class)]).is_empty());
    assert_eq!(bench.login(session, "9999"), CKR_PIN_INCORRECT);
    assert_eq!(bench.login(session, PIN), CKR_OK);
    let other = bench.open(CKF_RW_SESSION);
    assert_eq!(state(session), CKS_RO_USER_FUNCTIONS);
    assert_eq!(state(other), CKS_RW_USER_FUNCTIONS, "a login is for all sessions");
    assert_eq!(bench.login(other, PIN), CKR_USER_ALREADY_LOGGED_IN);
    let key = bench.one(session, CKO_PRIVATE_KEY, 1);
    assert!(sign(&bench, session, CKM_ECDSA_SHA256, key, b"x").is_ok());
    assert_eq!(call!(bench, C_Logout, other), CKR_OK);
    assert_eq!(state(session), CKS_RO_PUBLIC_SESSION);
    let refused = sign(&bench, session, CKM_ECDSA_SHA256, key, b"x");
    assert_eq!(refused, Err(CKR_USER_NOT_LOGGED_IN));
    assert_eq!(bench.login(session, PIN), CKR_OK);
    assert!(sign(&bench, session, CKM_ECDSA_SHA256, key, b"x").is_ok());
}

#[test]
fn session_of_a_token_that_was_used_opens_while_the_card_is_away() {
    let bench = Bench::new(None);
    bench.world.absent.store(true, Ordering::SeqCst);
    let open = |session: &mut CK_SESSION_HANDLE| {
        call!(bench, C_OpenSession, 0, CKF_SERIAL_SESSION, ptr::null_mut(), None, session)
    };
    let (mut session, null) = (0, ptr::null_mut());
    assert_eq!(open(&mut session), CKR_TOKEN_NOT_PRESENT, "nobody has used it yet");
    bench.world.absent.store(false, Ordering::SeqCst);
    let first = bench.open(0);
    bench.world.absent.store(true, Ordering::SeqCst);
    assert_eq!(call!(bench, C_CloseSession, first), CKR_OK);
    // libp11 would wait for the session of another thread.
    assert_eq!(open(&mut session), CKR_OK);
    assert_eq!(call!(bench, C_FindObjectsInit, session, null, 0), CKR_DEVICE_REMOVED);
    bench.world.absent.store(false, Ordering::SeqCst);
    let key = bench.one(session, CKO_PRIVATE_KEY, 1);
    assert!(sign(&bench, session, CKM_ECDSA_SHA256, key, b"x").is_ok());
}

#[test]
fn wrong_pins_lock_the_card() {
    let bench = Bench::new(Some(PinScope::EveryKey));
    let session = bench.open(0);
    let flags = || {
        let mut info = CK_TOKEN_INFO::default();
        assert_eq!(call!(bench, C_GetTokenInfo, 0, &mut info), CKR_OK);
        info.flags
    };
    assert_eq!(flags() & CKF_USER_PIN_COUNT_LOW, 0);
    assert_ne!(flags() & CKF_LOGIN_REQUIRED, 0);
    // An invalid PIN uses no try.
    for no_pin in ["", "12", "123456789", "12ab"] {
        assert_eq!(bench.login(session, no_pin), CKR_PIN_INCORRECT);
    }
    assert_eq!(flags() & CKF_USER_PIN_COUNT_LOW, 0);
    assert_eq!(bench.login(session, "0000"), CKR_PIN_INCORRECT);
    assert_ne!(flags() & CKF_USER_PIN_COUNT_LOW, 0);
    assert_eq!(bench.login(session, "0000"), CKR_PIN_INCORRECT);
    assert_ne!(flags() & CKF_USER_PIN_FINAL_TRY, 0);
    assert_eq!(bench.login(session, "0000"), CKR_PIN_LOCKED);
    assert_eq!(bench.login(session, PIN), CKR_PIN_LOCKED);
    assert_ne!(flags() & CKF_USER_PIN_LOCKED, 0);
}
