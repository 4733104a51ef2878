// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DER of attributes: curves, points, public keys, serial numbers.

use warifu_iotsafe_client::Curve;

/// id-ecPublicKey (RFC 5480 section 2.1.1).
const EC_PUBLIC_KEY: [u8; 9] = [0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// secp256r1 (RFC 5480 section 2.1.1.1).
const SECP256R1: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// brainpoolP256r1 (RFC 5639 section 4.1).
const BRAINPOOL_P256R1: [u8; 11] =
    [0x06, 0x09, 0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x07];

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const PRINTABLE_STRING: u8 = 0x13;
const SEQUENCE: u8 = 0x30;

/// CKA_EC_PARAMS: the curve's object identifier.
#[must_use]
pub fn ec_params(curve: Curve) -> &'static [u8] {
    match curve {
        Curve::Secp256r1 => &SECP256R1,
        Curve::BrainpoolP256r1 => &BRAINPOOL_P256R1,
    }
}

/// The curve of CKA_EC_PARAMS: by object identifier, or by name (PKCS#11 3.0 section 2.3.3).
#[must_use]
pub fn curve(params: &[u8]) -> Option<Curve> {
    let by_name = |curve: Curve| {
        let names: &[&str] = match curve {
            Curve::Secp256r1 => &["secp256r1", "prime256v1", "P-256"],
            Curve::BrainpoolP256r1 => &["brainpoolP256r1"],
        };
        names.iter().any(|name| params == element(PRINTABLE_STRING, name.as_bytes()))
    };
    Curve::ALL.into_iter().find(|curve| params == ec_params(*curve) || by_name(*curve))
}

/// CKA_EC_POINT: an OCTET STRING around the point (PKCS#11 2.40 mechanisms section 2.3.3).
#[must_use]
pub fn ec_point(point: &[u8; 65]) -> Vec<u8> {
    element(OCTET_STRING, point)
}

/// The point of a CKA_EC_POINT, or of public data, which may be bare (PKCS#11 2.40 mechanisms
/// section 2.3.8); None if it is not an uncompressed point of
/// 65 bytes.
#[must_use]
pub fn point(data: &[u8]) -> Option<[u8; 65]> {
    let bare = data.strip_prefix(&[OCTET_STRING, 65]).unwrap_or(data);
    bare.try_into().ok().filter(|point: &[u8; 65]| point[0] == 4)
}

/// SubjectPublicKeyInfo (RFC 5480 section 2).
#[must_use]
pub fn public_key_info(curve: Curve, point: &[u8; 65]) -> Vec<u8> {
    let algorithm = element(SEQUENCE, &[&EC_PUBLIC_KEY, ec_params(curve)].concat());
    let key = element(BIT_STRING, &[&[0], &point[..]].concat());
    element(SEQUENCE, &[algorithm, key].concat())
}

/// INTEGER of the bytes that a certificate has for its serial number.
#[must_use]
pub fn integer(bytes: &[u8]) -> Vec<u8> {
    element(INTEGER, bytes)
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut out = vec![tag];
    match length {
        0..=0x7f => out.push(length as u8),
        0x80..=0xff => out.extend([0x81, length as u8]),
        _ => out.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    out.extend_from_slice(content);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn curves_by_identifier_and_name() {
        for curve_ in Curve::ALL {
            assert_eq!(curve(ec_params(curve_)), Some(curve_));
        }
        assert_eq!(curve(&element(PRINTABLE_STRING, b"secp256r1")), Some(Curve::Secp256r1));
        assert_eq!(curve(&element(PRINTABLE_STRING, b"secp384r1")), None);
        assert_eq!(curve(&[]), None);
    }

    #[test]
    fn point_round_trip() {
        let bytes = [4; 65];
        assert_eq!(point(&ec_point(&bytes)), Some(bytes));
        assert_eq!(point(&bytes), Some(bytes));
        assert_eq!(point(&[2; 33]), None);
        let info = public_key_info(Curve::Secp256r1, &bytes);
        assert_eq!((info.len(), &info[..4]), (91, &[0x30, 0x59, 0x30, 0x13][..]));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(data: Vec<u8>) {
            let _ = (curve(&data), point(&data), integer(&data));
        }
    }
}
