// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every template is accepted, or refused with a return value of the standard.

use cryptoki_sys::*;
use proptest::prelude::*;

use crate::bench::{Bench, mechanism};

/// Known attribute types, and some unknown.
const KINDS: [CK_ATTRIBUTE_TYPE; 14] = [
    CKA_CLASS,
    CKA_TOKEN,
    CKA_PRIVATE,
    CKA_LABEL,
    CKA_KEY_TYPE,
    CKA_ID,
    CKA_SENSITIVE,
    CKA_EC_PARAMS,
    CKA_EC_POINT,
    CKA_VALUE,
    CKA_VALUE_LEN,
    CKA_MODULUS,
    CKA_VERIFY,
    0x8000_0001,
];

fn attributes() -> impl Strategy<Value = Vec<(CK_ATTRIBUTE_TYPE, Vec<u8>)>> {
    let number = (0..5_u64).prop_map(|number| number.to_ne_bytes().to_vec());
    let flag = (0..3_u8).prop_map(|flag| vec![flag]);
    let value = prop_oneof![number, flag, prop::collection::vec(any::<u8>(), 0..70)];
    prop::collection::vec((prop::sample::select(&KINDS[..]), value), 0..8)
}

fn raw(attributes: &mut [(CK_ATTRIBUTE_TYPE, Vec<u8>)]) -> Vec<CK_ATTRIBUTE> {
    attributes.iter_mut().map(|(kind, value)| crate::bench::bytes(*kind, value)).collect()
}

#[test]
fn return_values_for_arbitrary_templates() {
    let bench = Bench::new(None);
    let session = bench.open(CKF_RW_SESSION);
    let private = bench.one(session, CKO_PRIVATE_KEY, 1);
    let allowed = [
        CKR_OK,
        CKR_TEMPLATE_INCOMPLETE,
        CKR_TEMPLATE_INCONSISTENT,
        CKR_ATTRIBUTE_VALUE_INVALID,
        CKR_ATTRIBUTE_TYPE_INVALID,
        CKR_ATTRIBUTE_READ_ONLY,
        CKR_ATTRIBUTE_SENSITIVE,
        CKR_BUFFER_TOO_SMALL,
        CKR_CURVE_NOT_SUPPORTED,
        CKR_TOKEN_WRITE_PROTECTED,
        CKR_DEVICE_MEMORY,
    ];
    let config = ProptestConfig::with_cases(400);
    proptest!(config, |(mut one in attributes(), mut two in attributes())| {
        let (mut first, mut second) = (raw(&mut one), raw(&mut two));
        let (a, a_count) = (first.as_mut_ptr(), first.len() as CK_ULONG);
        let (b, b_count) = (second.as_mut_ptr(), second.len() as CK_ULONG);
        let (mut object, mut other) = (0, 0);
        let found = call!(bench, C_FindObjectsInit, session, a, a_count);
        prop_assert!(allowed.contains(&found));
        call!(bench, C_FindObjectsFinal, session);
        let created = call!(bench, C_CreateObject, session, a, a_count, &mut object);
        prop_assert!(allowed.contains(&created));
        let mut mechanism = mechanism(CKM_EC_KEY_PAIR_GEN);
        let made = call!(
            bench, C_GenerateKeyPair, session, &mut mechanism,
            a, a_count, b, b_count, &mut object, &mut other
        );
        prop_assert!(allowed.contains(&made));
        let got = call!(bench, C_GetAttributeValue, session, private, b, b_count);
        prop_assert!(allowed.contains(&got));
    });
}
