// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Message digesting (PKCS#11 2.40 section 5.10).

use cryptoki_sys::*;
use warifu_card::crypto::Hash;

use crate::bench::{Bench, mechanism};

#[test]
fn single_and_multi_part_digests() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    for (kind, hash) in
        [(CKM_SHA256, Hash::Sha256), (CKM_SHA384, Hash::Sha384), (CKM_SHA512, Hash::Sha512)]
    {
        let (mut digest, mut length) = ([0; 64], 64);
        let data = b"tally".as_ptr().cast_mut();
        assert_eq!(call!(bench, C_DigestInit, session, &mut mechanism(kind)), CKR_OK);
        assert_eq!(
            call!(bench, C_Digest, session, data, 5, digest.as_mut_ptr(), &mut length),
            CKR_OK
        );
        assert_eq!(digest[..length as usize], hash.digest(b"tally"));
        assert_eq!(call!(bench, C_DigestInit, session, &mut mechanism(kind)), CKR_OK);
        assert_eq!(call!(bench, C_DigestUpdate, session, data, 5), CKR_OK);
        digest = [0; 64];
        length = 64;
        assert_eq!(call!(bench, C_DigestFinal, session, digest.as_mut_ptr(), &mut length), CKR_OK);
        assert_eq!(digest[..length as usize], hash.digest(b"tally"));
    }
}
