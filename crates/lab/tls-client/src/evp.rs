// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key agreement and key derivation as libssl 3.0 calls them, which the crate `openssl` has only
//! by older functions that take another time.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use foreign_types::ForeignType;
use openssl::error::ErrorStack;
use openssl::pkey::{PKey, Private};
use openssl_sys as sys;
use warifu_model::Group;

/// `EVP_KDF_HKDF_MODE_EXPAND_ONLY` (include/openssl/kdf.h).
const EXPAND_ONLY: c_int = 2;

/// `EVP_MAX_MD_SIZE` (include/openssl/evp.h).
const LONGEST_DIGEST: usize = 64;

/// `OSSL_PARAM` (include/openssl/core.h).
#[repr(C)]
struct Parameter {
    key: *const c_char,
    data_type: c_uint,
    data: *mut c_void,
    data_size: usize,
    return_size: usize,
}

#[allow(non_camel_case_types)]
enum EVP_KDF {}
#[allow(non_camel_case_types)]
enum EVP_KDF_CTX {}

#[allow(non_snake_case)]
unsafe extern "C" {
    fn EVP_PKEY_CTX_new_from_name(
        library: *mut c_void,
        name: *const c_char,
        query: *const c_char,
    ) -> *mut sys::EVP_PKEY_CTX;
    fn EVP_PKEY_CTX_new_from_pkey(
        library: *mut c_void,
        key: *mut sys::EVP_PKEY,
        query: *const c_char,
    ) -> *mut sys::EVP_PKEY_CTX;
    fn EVP_PKEY_CTX_set_group_name(context: *mut sys::EVP_PKEY_CTX, name: *const c_char) -> c_int;
    fn EVP_PKEY_get1_encoded_public_key(key: *mut sys::EVP_PKEY, to: *mut *mut u8) -> usize;
    fn EVP_PKEY_set1_encoded_public_key(
        key: *mut sys::EVP_PKEY,
        from: *const u8,
        bytes: usize,
    ) -> c_int;
    fn EVP_KDF_fetch(
        library: *mut c_void,
        name: *const c_char,
        query: *const c_char,
    ) -> *mut EVP_KDF;
    fn EVP_KDF_free(kdf: *mut EVP_KDF);
    fn EVP_KDF_CTX_new(kdf: *mut EVP_KDF) -> *mut EVP_KDF_CTX;
    fn EVP_KDF_CTX_free(context: *mut EVP_KDF_CTX);
    fn EVP_KDF_derive(
        context: *mut EVP_KDF_CTX,
        to: *mut u8,
        bytes: usize,
        parameters: *const Parameter,
    ) -> c_int;
    fn EVP_Q_mac(
        library: *mut c_void,
        name: *const c_char,
        query: *const c_char,
        digest: *const c_char,
        parameters: *const Parameter,
        key: *const c_void,
        key_bytes: usize,
        data: *const u8,
        bytes: usize,
        to: *mut u8,
        room: usize,
        written: *mut usize,
    ) -> *mut u8;
    fn OSSL_PARAM_construct_int(key: *const c_char, value: *mut c_int) -> Parameter;
    fn OSSL_PARAM_construct_utf8_string(
        key: *const c_char,
        value: *mut c_char,
        bytes: usize,
    ) -> Parameter;
    fn OSSL_PARAM_construct_octet_string(
        key: *const c_char,
        value: *mut c_void,
        bytes: usize,
    ) -> Parameter;
    fn OSSL_PARAM_construct_end() -> Parameter;
}

/// A fresh key pair and its share on the wire (`ssl_generate_pkey_group`, ssl/s3_lib.c).
pub fn key_share(group: Group) -> Result<(PKey<Private>, Vec<u8>), ErrorStack> {
    let (algorithm, name) = match group {
        Group::Secp256r1 => (c"EC", Some(c"prime256v1")),
        Group::X25519 => (c"X25519", None),
    };
    // SAFETY: the strings end with a zero byte; the context is freed on every way; the key that is
    // made is handed to one owner, and the share, which OpenSSL allocates, is copied and freed.
    unsafe {
        let context = EVP_PKEY_CTX_new_from_name(ptr::null_mut(), algorithm.as_ptr(), ptr::null());
        let mut key = ptr::null_mut();
        let done = !context.is_null()
            && sys::EVP_PKEY_keygen_init(context) > 0
            && name.is_none_or(|name| EVP_PKEY_CTX_set_group_name(context, name.as_ptr()) > 0)
            && sys::EVP_PKEY_keygen(context, &mut key) > 0;
        sys::EVP_PKEY_CTX_free(context);
        if !done {
            return Err(ErrorStack::get());
        }
        let key = PKey::from_ptr(key);
        let mut share = ptr::null_mut();
        let bytes = EVP_PKEY_get1_encoded_public_key(key.as_ptr(), &mut share);
        if bytes == 0 {
            return Err(ErrorStack::get());
        }
        let copy = std::slice::from_raw_parts(share, bytes).to_vec();
        sys::OPENSSL_free(share.cast());
        Ok((key, copy))
    }
}

/// The shared secret from a share on the wire (`tls_process_key_share` and `ssl_derive`).
pub fn derive(own: &PKey<Private>, share: &[u8]) -> Result<Vec<u8>, ErrorStack> {
    let mut secret = vec![0; 64];
    // SAFETY: all keys and contexts are live until they are freed, once each; the lengths are
    // those of the slices.
    let done = unsafe {
        let peer = sys::EVP_PKEY_new();
        let mut bytes = secret.len();
        let read = !peer.is_null()
            && sys::EVP_PKEY_copy_parameters(peer, own.as_ptr()) > 0
            && EVP_PKEY_set1_encoded_public_key(peer, share.as_ptr(), share.len()) > 0;
        let context = EVP_PKEY_CTX_new_from_pkey(ptr::null_mut(), own.as_ptr(), ptr::null());
        let done = read
            && !context.is_null()
            && sys::EVP_PKEY_derive_init(context) > 0
            && sys::EVP_PKEY_derive_set_peer(context, peer) > 0
            && sys::EVP_PKEY_derive(context, secret.as_mut_ptr(), &mut bytes) > 0;
        sys::EVP_PKEY_CTX_free(context);
        sys::EVP_PKEY_free(peer);
        secret.truncate(bytes);
        done
    };
    if done { Ok(secret) } else { Err(ErrorStack::get()) }
}

/// HKDF-Expand-Label (RFC 8446 section 7.1) as `tls13_hkdf_expand` (ssl/tls13_enc.c).
pub fn expand_label(digest: &CStr, secret: &[u8], hash: &[u8]) -> Result<Vec<u8>, ErrorStack> {
    let mut mode = EXPAND_ONLY;
    // SAFETY: names and values outlive the call that reads them.
    let parameters = unsafe {
        [
            OSSL_PARAM_construct_int(c"mode".as_ptr(), &mut mode),
            OSSL_PARAM_construct_utf8_string(c"digest".as_ptr(), digest.as_ptr().cast_mut(), 0),
            octets(c"key", secret),
            octets(c"prefix", b"tls13 "),
            octets(c"label", b"s hs traffic"),
            octets(c"data", hash),
            OSSL_PARAM_construct_end(),
        ]
    };
    // SAFETY: the same.
    unsafe { derived(c"TLS13-KDF", &parameters, secret.len()) }
}

/// The HMAC of a Finished as `tls13_final_finish_mac` (ssl/tls13_enc.c).
pub fn hmac(digest: &CStr, key: &[u8], data: &[u8]) -> Result<Vec<u8>, ErrorStack> {
    let mut to = vec![0; LONGEST_DIGEST];
    let mut written = 0;
    // SAFETY: names and slices are live until it returns; it writes no more than the room that it
    // is told.
    let done = unsafe {
        EVP_Q_mac(
            ptr::null_mut(),
            c"HMAC".as_ptr(),
            ptr::null(),
            digest.as_ptr(),
            ptr::null(),
            key.as_ptr().cast(),
            key.len(),
            data.as_ptr(),
            data.len(),
            to.as_mut_ptr(),
            to.len(),
            &mut written,
        )
    };
    to.truncate(written);
    if done.is_null() { Err(ErrorStack::get()) } else { Ok(to) }
}

/// TLS 1.2's PRF (RFC 5246 section 5) as `tls1_PRF` (ssl/t1_enc.c).
pub fn prf(
    digest: &CStr,
    secret: &[u8],
    label: &[u8],
    seed: &[u8],
    bytes: usize,
) -> Result<Vec<u8>, ErrorStack> {
    // SAFETY: names and values outlive the call that reads them.
    let parameters = unsafe {
        [
            OSSL_PARAM_construct_utf8_string(c"digest".as_ptr(), digest.as_ptr().cast_mut(), 0),
            octets(c"secret", secret),
            octets(c"seed", label),
            octets(c"seed", seed),
            OSSL_PARAM_construct_end(),
        ]
    };
    // SAFETY: the same.
    unsafe { derived(c"TLS1-PRF", &parameters, bytes) }
}

/// # Safety
/// The value lives as long as the parameter is read.
unsafe fn octets(key: &CStr, value: &[u8]) -> Parameter {
    let (key, bytes) = (key.as_ptr(), value.len());
    // SAFETY: it only notes the pointers.
    unsafe { OSSL_PARAM_construct_octet_string(key, value.as_ptr().cast_mut().cast(), bytes) }
}

/// A KDF's output, the algorithm fetched anew, as libssl does for each.
///
/// # Safety
/// The parameters point to what lives, and the last of them is the end.
unsafe fn derived(
    name: &CStr,
    parameters: &[Parameter],
    bytes: usize,
) -> Result<Vec<u8>, ErrorStack> {
    let mut to = vec![0; bytes];
    // SAFETY: the parameters are the caller's word; the call writes to `to` alone, by its length.
    let done = unsafe {
        let kdf = EVP_KDF_fetch(ptr::null_mut(), name.as_ptr(), ptr::null());
        if kdf.is_null() {
            return Err(ErrorStack::get());
        }
        let context = EVP_KDF_CTX_new(kdf);
        EVP_KDF_free(kdf);
        let done = !context.is_null()
            && EVP_KDF_derive(context, to.as_mut_ptr(), to.len(), parameters.as_ptr()) > 0;
        EVP_KDF_CTX_free(context);
        done
    };
    if done { Ok(to) } else { Err(ErrorStack::get()) }
}

#[cfg(test)]
mod tests {
    use warifu_model::Keyword;

    use super::*;

    #[test]
    fn both_ends_derive_the_same_secret() {
        for &group in Group::ALL {
            let (one, of_one) = key_share(group).unwrap();
            let (other, of_other) = key_share(group).unwrap();
            let secret = derive(&one, &of_other).unwrap();
            assert_eq!(secret, derive(&other, &of_one).unwrap());
            assert_eq!(secret.len(), 32);
            assert!(derive(&one, &[0; 3]).is_err());
        }
    }

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    }

    /// `vectors/tls12-prf`, those of the hashes that suites have.
    #[test]
    fn prf_of_the_working_group() {
        let text = include_str!("../../../../vectors/tls12-prf/vectors.txt");
        for (name, digest) in [("SHA-256", c"SHA256"), ("SHA-384", c"SHA384")] {
            let (_, rest) = text.split_once(&format!("hash = {name}\n")).unwrap();
            let value = |key: &str| {
                let line = rest.lines().find_map(|line| line.strip_prefix(key)).unwrap();
                bytes(line.trim_start_matches(" = "))
            };
            let expected = value("output");
            let found =
                prf(digest, &value("secret"), &value("label"), &value("seed"), expected.len());
            assert_eq!(found.unwrap(), expected, "{name}");
        }
    }

    /// RFC 4231 section 4.3.
    #[test]
    fn hmac_of_rfc_4231() {
        let expected = bytes("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let found = hmac(c"SHA256", b"Jefe", b"what do ya want for nothing?").unwrap();
        assert_eq!(found, expected);
        assert!(hmac(c"NO-SUCH-DIGEST", b"Jefe", b"").is_err());
    }

    /// RFC 8448 section 3: the server's handshake traffic secret of the simple 1-RTT handshake.
    #[test]
    fn expand_label_of_rfc_8448() {
        let secret = bytes("1dc826e93606aa6fdc0aadc12f741b01046aa6b99f691ed221a9f0ca043fbeac");
        let hash = bytes("860c06edc07858ee8e78f0e7428c58edd6b43f2ca3e6e95f02ed063cf0e1cad8");
        let expected = bytes("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38");
        assert_eq!(expand_label(c"SHA256", &secret, &hash).unwrap(), expected);
    }
}
