// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random number generation (PKCS#11 2.40 section 5.15).

use cryptoki_sys::*;

use crate::bench::Bench;

#[test]
fn random_bytes_of_several_commands() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    let mut room = [0; 600];
    assert_eq!(call!(bench, C_GenerateRandom, session, room.as_mut_ptr(), 600), CKR_OK);
    assert!(room[..256] != room[256..512] && room[512..] != [0; 88]);
}
