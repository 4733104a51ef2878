// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slot and token management (PKCS#11 2.40 section 5.5).

use std::ptr;
use std::sync::atomic::Ordering;

use cryptoki_sys::*;

use crate::bench::Bench;
use crate::sign_verify::sign;

#[test]
fn card_removed_and_inserted() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    let key = bench.one(session, CKO_PRIVATE_KEY, 1);
    bench.world.absent.store(true, Ordering::SeqCst);
    let gone = sign(&bench, session, CKM_ECDSA_SHA256, key, b"x");
    assert_eq!(gone, Err(CKR_DEVICE_REMOVED));
    let mut info = CK_TOKEN_INFO::default();
    assert_eq!(call!(bench, C_GetTokenInfo, 0, &mut info), CKR_TOKEN_NOT_PRESENT);
    let mut count = 0;
    assert_eq!(call!(bench, C_GetSlotList, CK_TRUE, ptr::null_mut(), &mut count), CKR_OK);
    assert_eq!(count, 0);
    bench.world.absent.store(false, Ordering::SeqCst);
    assert!(sign(&bench, session, CKM_ECDSA_SHA256, key, b"x").is_ok());
}
