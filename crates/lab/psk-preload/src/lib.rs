// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Gives a server on OpenSSL 3 a pre-shared key from outside (RFC 8446 section 2.2, RFC 4279).
//! nginx has no directive for one, so the lab preloads this library into the unmodified program:
//! each TLS context that it makes is given `SSL_CTX_set_psk_server_callback`, which is what a
//! server with such a directive would call. All else, its certificate among it, stays as it is
//! configured.
//!
//! `WARIFU_PSK_IDENTITY` names the key, `WARIFU_PSK_KEY` holds it, hexadecimal. Without them the
//! library does nothing.

use std::env;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::sync::OnceLock;

/// What is passed on unread.
type Opaque = *mut c_void;
type NewContext = unsafe extern "C" fn(method: *const c_void) -> Opaque;
type ServerCallback =
    extern "C" fn(ssl: Opaque, identity: *const c_char, psk: *mut c_uchar, most: c_uint) -> c_uint;
type SetServerCallback = unsafe extern "C" fn(context: Opaque, callback: ServerCallback);

/// The one key that the server knows.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    identity: Vec<u8>,
    key: Vec<u8>,
}

/// Read once, in the process that sets the server up: nginx's workers have no environment.
fn known() -> Option<&'static Known> {
    static KNOWN: OnceLock<Option<Known>> = OnceLock::new();
    let read =
        || known_of(env::var("WARIFU_PSK_IDENTITY").ok()?, &env::var("WARIFU_PSK_KEY").ok()?);
    KNOWN.get_or_init(read).as_ref()
}

fn known_of(identity: String, key: &str) -> Option<Known> {
    let digits = key.as_bytes();
    let whole = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let key: Vec<u8> = digits.chunks(2).map(byte).collect::<Option<_>>()?;
    (whole && !key.is_empty()).then(|| Known { identity: identity.into_bytes(), key })
}

/// The next definition of a function, as libssl's own.
fn next(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// In the place of libssl's function of the same name (openssl SSL_CTX_new(3)).
///
/// # Safety
/// As libssl's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SSL_CTX_new(method: *const c_void) -> *mut c_void {
    let Some(real) = next(c"SSL_CTX_new") else { return std::ptr::null_mut() };
    // SAFETY: libssl's function has this type (include/openssl/ssl.h, OpenSSL 3.0), and takes what
    // the caller gave.
    let context = unsafe { std::mem::transmute::<*mut c_void, NewContext>(real)(method) };
    if !context.is_null()
        && known().is_some()
        && let Some(set) = next(c"SSL_CTX_set_psk_server_callback")
    {
        // SAFETY: its type is that of the same header; the context is live.
        unsafe { std::mem::transmute::<*mut c_void, SetServerCallback>(set)(context, on_psk) };
    }
    context
}

/// The key of an identity; 0 for one that is not known, which ends the handshake with
/// unknown_psk_identity.
extern "C" fn on_psk(
    _ssl: Opaque,
    identity: *const c_char,
    psk: *mut c_uchar,
    most: c_uint,
) -> c_uint {
    let Some(known) = known().filter(|_| !identity.is_null() && !psk.is_null()) else { return 0 };
    // SAFETY: libssl passes a text that ends with a zero.
    let named = unsafe { CStr::from_ptr(identity) }.to_bytes();
    let length = known.key.len();
    if named != known.identity || length > most as usize {
        return 0;
    }
    // SAFETY: libssl passes `most` writable bytes, apart from ours.
    unsafe { std::ptr::copy_nonoverlapping(known.key.as_ptr(), psk, length) };
    c_int::try_from(length).map_or(0, c_int::cast_unsigned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_by_identity() {
        let known = known_of("meter".into(), "00ff").unwrap();
        assert_eq!(known, Known { identity: b"meter".to_vec(), key: vec![0, 255] });
        for wrong in ["", "0", "0g", "+1", "0x"] {
            assert_eq!(known_of("meter".into(), wrong), None, "{wrong}");
        }
    }
}
