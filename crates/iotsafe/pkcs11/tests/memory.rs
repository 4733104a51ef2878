// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory in use after 100,000 calls. Alone in its process, since other tests allocate too.

#[allow(dead_code, reason = "made for the other tests as well")]
#[macro_use]
#[path = "conformance/bench.rs"]
mod bench;

use bench::{Bench, PIN, bytes, mechanism, number};
use cryptoki_sys::*;
use warifu_card::PinScope;

/// Calls of one round below.
const CALLS: usize = 19;
const ROUNDS: usize = 5_300;
/// Rounds until every cache is as full as it gets.
const WARM_ROUNDS: usize = 200;
/// Allowed growth, bytes. A leak of one byte a round would be 5,100.
const SLACK_BYTES: usize = 4_000;

/// Bytes in use on the heap, as the allocator counts them.
fn in_use() -> usize {
    // SAFETY: it has no conditions.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

/// Opens a session, logs in, finds, reads, begins operations and abandons them; sometimes signs.
fn round(bench: &Bench, at: usize) {
    let session = bench.open(0);
    assert_eq!(bench.login(session, PIN), CKR_OK);
    let (mut class, mut id) = (CKO_PRIVATE_KEY, [1]);
    let mut template = [number(CKA_CLASS, &mut class), bytes(CKA_ID, &mut id)];
    let found = bench.find(session, &mut template);
    for kind in [CKA_LABEL, CKA_EC_PARAMS] {
        assert!(bench.get(session, found[0], kind).is_ok());
    }
    assert_eq!(bench.get(session, found[0], CKA_VALUE), Err(CKR_ATTRIBUTE_SENSITIVE));
    let mut ecdsa = mechanism(CKM_ECDSA_SHA256);
    let (mut signature, mut length) = ([0; 64], 1);
    let text = b"text".as_ptr().cast_mut();
    assert_eq!(call!(bench, C_SignInit, session, &mut ecdsa, found[0]), CKR_OK);
    let sign = |length: &mut CK_ULONG, signature: &mut [u8; 64]| {
        call!(bench, C_Sign, session, text, 4, signature.as_mut_ptr(), length)
    };
    assert_eq!(sign(&mut length, &mut signature), CKR_BUFFER_TOO_SMALL);
    if at.is_multiple_of(50) {
        assert_eq!(sign(&mut length, &mut signature), CKR_OK);
    }
    let mut sha = mechanism(CKM_SHA384);
    assert_eq!(call!(bench, C_DigestInit, session, &mut sha), CKR_OK);
    assert_eq!(call!(bench, C_DigestUpdate, session, text, 4), CKR_OK);
    assert_eq!(call!(bench, C_GenerateRandom, session, signature.as_mut_ptr(), 64), CKR_OK);
    // A wrong call as well.
    assert_eq!(call!(bench, C_VerifyFinal, session, text, 4), CKR_OPERATION_NOT_INITIALIZED);
    assert_eq!(call!(bench, C_CloseSession, session), CKR_OK);
}

#[test]
fn memory_after_100_000_calls() {
    const { assert!(CALLS * ROUNDS >= 100_000) };
    let bench = Bench::new(Some(PinScope::Signing));
    (0..WARM_ROUNDS).for_each(|at| round(&bench, at));
    let before = in_use();
    (WARM_ROUNDS..ROUNDS).for_each(|at| round(&bench, at));
    let grown = in_use().saturating_sub(before);
    assert!(grown < SLACK_BYTES, "{grown} bytes more are in use");
}
