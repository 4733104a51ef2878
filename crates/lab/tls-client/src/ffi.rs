// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The few calls of libssl that the `openssl` crate lacks. All `unsafe` of the
//! library's TLS part is here.

use std::ffi::{CString, c_char, c_int, c_long, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::{Arc, OnceLock};

use foreign_types::{ForeignType, ForeignTypeRef};
use openssl::bn::BigNum;
use openssl::ec::{EcKey, EcKeyRef};
use openssl::ecdsa::EcdsaSig;
use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::pkey::{PKey, Private, Public};
use openssl::ssl::{Ssl, SslContextBuilder, SslOptions, SslRef, SslSession};
use openssl_sys as sys;

/// What happens inside libssl during a call, as it happens.
///
/// A watch must not call back into the connection that it watches.
pub trait Watch: Send + Sync {
    /// The message callback: a record header, a handshake message and so on, whole.
    /// On sending it fires after the bytes went to the BIO, on receiving before the work.
    fn message(&self, sent: bool, content: Content, bytes: &[u8]);
    /// The info callback's loop event: the state machine is about to take a step.
    fn turn(&self) {}
}

/// The content types that the message callback reports (RFC 8446 section 5.1,
/// and OpenSSL's two pseudo types).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Type 20.
    ChangeCipherSpec,
    /// Type 21.
    Alert,
    /// Type 22.
    Handshake,
    /// The five bytes before a record (`SSL3_RT_HEADER`); on receiving, before it is opened.
    RecordHeader,
    /// The type inside an encrypted TLS 1.3 record (`SSL3_RT_INNER_CONTENT_TYPE`).
    InnerType,
    /// Anything else.
    Other,
}

// include/openssl/ssl3.h, OpenSSL 3.0.
const SSL3_RT_CHANGE_CIPHER_SPEC: c_int = 20;
const SSL3_RT_ALERT: c_int = 21;
const SSL3_RT_HANDSHAKE: c_int = 22;
const SSL3_RT_HEADER: c_int = 256;
const SSL3_RT_INNER_CONTENT_TYPE: c_int = 257;
// include/openssl/ssl.h, OpenSSL 3.0.
const SSL_CB_LOOP: c_int = 1;
const SSL_CTRL_SET_GROUPS_LIST: c_int = 92;
const SSL_EARLY_DATA_ACCEPTED: c_int = 2;
const SSL_OP_ALLOW_NO_DHE_KEX: u64 = 1 << 10;
const SSL_OP_NO_ANTI_REPLAY: u64 = 1 << 24;

type MessageCallback =
    extern "C" fn(c_int, c_int, c_int, *const c_void, usize, *mut sys::SSL, *mut c_void);
type InfoCallback = extern "C" fn(*const sys::SSL, c_int, c_int);

unsafe extern "C" {
    fn SSL_set_msg_callback(ssl: *mut sys::SSL, callback: Option<MessageCallback>);
    fn SSL_set_info_callback(ssl: *mut sys::SSL, callback: Option<InfoCallback>);
    fn SSL_get_early_data_status(ssl: *const sys::SSL) -> c_int;
    fn SSL_CTX_set_timeout(context: *mut sys::SSL_CTX, seconds: c_long) -> c_long;
}

type Slot = Index<Ssl, Arc<dyn Watch>>;

fn slot() -> Result<Slot, ErrorStack> {
    static SLOT: OnceLock<Slot> = OnceLock::new();
    if let Some(slot) = SLOT.get() {
        return Ok(*slot);
    }
    let made = Ssl::new_ex_index()?;
    Ok(*SLOT.get_or_init(|| made))
}

/// Lets `watch` see what `ssl` does; with `turns`, also the state machine's steps.
pub fn watch(ssl: &mut SslRef, watch: Arc<dyn Watch>, turns: bool) -> Result<(), ErrorStack> {
    ssl.set_ex_data(slot()?, watch);
    // SAFETY: `ssl` is live, and the callbacks have the C signatures that OpenSSL's
    // manual gives; they reach their data through `ssl` itself.
    unsafe {
        SSL_set_msg_callback(ssl.as_ptr(), Some(on_message));
        if turns {
            SSL_set_info_callback(ssl.as_ptr(), Some(on_info));
        }
    }
    Ok(())
}

extern "C" fn on_message(
    sent: c_int,
    _version: c_int,
    content: c_int,
    bytes: *const c_void,
    len: usize,
    ssl: *mut sys::SSL,
    _argument: *mut c_void,
) {
    let content = match content {
        SSL3_RT_CHANGE_CIPHER_SPEC => Content::ChangeCipherSpec,
        SSL3_RT_ALERT => Content::Alert,
        SSL3_RT_HANDSHAKE => Content::Handshake,
        SSL3_RT_HEADER => Content::RecordHeader,
        SSL3_RT_INNER_CONTENT_TYPE => Content::InnerType,
        _ => Content::Other,
    };
    // SAFETY: OpenSSL passes the live connection, and `len` readable bytes that it
    // leaves alone during the callback.
    let (ssl, bytes) = unsafe {
        let bytes = if bytes.is_null() || len == 0 {
            &[]
        } else {
            slice::from_raw_parts(bytes.cast::<u8>(), len)
        };
        (SslRef::from_ptr(ssl), bytes)
    };
    notify(ssl, |watch| watch.message(sent != 0, content, bytes));
}

extern "C" fn on_info(ssl: *const sys::SSL, location: c_int, _value: c_int) {
    if location & SSL_CB_LOOP == 0 {
        return;
    }
    // SAFETY: OpenSSL passes the live connection; only its extra data is read.
    let ssl = unsafe { SslRef::from_ptr(ssl.cast_mut()) };
    notify(ssl, |watch| watch.turn());
}

/// A panic must not cross C; the watch that panicked shows a gap, which the
/// users of its record find.
fn notify(ssl: &SslRef, call: impl FnOnce(&dyn Watch)) {
    if let Ok(slot) = slot()
        && let Some(watch) = ssl.ex_data(slot)
    {
        let _ = catch_unwind(AssertUnwindSafe(|| call(watch.as_ref())));
    }
}

/// Offers `session`, which a connection of the same context was given.
pub fn resume(ssl: &mut SslRef, session: &SslSession) -> Result<(), ErrorStack> {
    // SAFETY: the callers keep one context for a variant, and take its sessions from
    // connections of that context alone.
    unsafe { ssl.set_session(session) }
}

/// Offers or accepts these groups alone on this one connection.
pub fn set_groups(ssl: &mut SslRef, list: &str) -> Result<(), ErrorStack> {
    let list = CString::new(list).unwrap_or_default();
    // SAFETY: SSL_set1_groups_list is this control call; it copies the string.
    let done = unsafe {
        sys::SSL_ctrl(
            ssl.as_ptr(),
            SSL_CTRL_SET_GROUPS_LIST,
            0,
            list.as_ptr().cast_mut().cast::<c_char>().cast(),
        )
    };
    if done == 1 { Ok(()) } else { Err(ErrorStack::get()) }
}

/// Whether the server took the early data.
pub fn early_data_accepted(ssl: &SslRef) -> bool {
    // SAFETY: reads one field of a live connection.
    unsafe { SSL_get_early_data_status(ssl.as_ptr()) == SSL_EARLY_DATA_ACCEPTED }
}

/// How long the context's sessions may be resumed, in seconds.
pub fn set_session_timeout(context: &mut SslContextBuilder, seconds: u32) {
    // SAFETY: writes one field of a context that is being built.
    unsafe { SSL_CTX_set_timeout(context.as_ptr(), c_long::from(seconds)) };
}

/// Lets a resumption go without (EC)DHE.
pub fn allow_psk_alone(context: &mut SslContextBuilder) {
    context.set_options(SslOptions::from_bits_retain(SSL_OP_ALLOW_NO_DHE_KEX as _));
}

/// Leaves tickets stateless where early data is allowed.
pub fn no_anti_replay(context: &mut SslContextBuilder) {
    context.set_options(SslOptions::from_bits_retain(SSL_OP_NO_ANTI_REPLAY as _));
}

/// Makes signatures for a key that is not in memory.
pub trait Signer: Send + Sync {
    /// r and s of a hash, both of the same length; `None` if it cannot be made.
    fn sign(&self, hash: &[u8]) -> Option<Vec<u8>>;
}

/// The form of EC_KEY_METHOD's `sign_sig` (include/openssl/ec.h, OpenSSL 3.0).
type SignSignature = unsafe extern "C" fn(
    *const u8,
    c_int,
    *const sys::BIGNUM,
    *const sys::BIGNUM,
    *mut sys::EC_KEY,
) -> *mut sys::ECDSA_SIG;

/// `EC_KEY_METHOD`, which only pointers to are known of.
#[repr(C)]
struct EcKeyMethod {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn EC_KEY_OpenSSL() -> *const EcKeyMethod;
    fn EC_KEY_METHOD_new(of: *const EcKeyMethod) -> *mut EcKeyMethod;
    fn EC_KEY_METHOD_get_sign(
        method: *const EcKeyMethod,
        sign: *mut *const c_void,
        sign_setup: *mut *const c_void,
        sign_sig: *mut *const c_void,
    );
    fn EC_KEY_METHOD_set_sign(
        method: *mut EcKeyMethod,
        sign: *const c_void,
        sign_setup: *const c_void,
        sign_sig: Option<SignSignature>,
    );
    fn EC_KEY_set_method(key: *mut sys::EC_KEY, method: *const EcKeyMethod) -> c_int;
    fn EC_KEY_set_ex_data(key: *mut sys::EC_KEY, index: c_int, data: *mut c_void) -> c_int;
    fn EC_KEY_get_ex_data(key: *const sys::EC_KEY, index: c_int) -> *mut c_void;
}

// include/openssl/crypto.h, OpenSSL 3.0.
const CRYPTO_EX_INDEX_EC_KEY: c_int = 8;

/// Where a key keeps its signer.
fn signer_slot() -> c_int {
    static SLOT: OnceLock<c_int> = OnceLock::new();
    // SAFETY: asks for an index without callbacks; OpenSSL guards its own table.
    *SLOT.get_or_init(|| unsafe {
        sys::CRYPTO_get_ex_new_index(
            CRYPTO_EX_INDEX_EC_KEY,
            0,
            std::ptr::null_mut(),
            None,
            None,
            None,
        )
    })
}

/// A private key that is a public one and someone who signs for it: what an engine for tokens
/// gives to programs. The signer is kept as long as the program runs.
pub fn signing_key(
    public: &EcKeyRef<Public>,
    signer: Arc<dyn Signer>,
) -> Result<PKey<Private>, ErrorStack> {
    let key = EcKey::from_public_key(public.group(), public.public_key())?;
    let slot = signer_slot();
    let kept: *mut Arc<dyn Signer> = Box::into_raw(Box::new(signer));
    // SAFETY: `key` is live. The method is a copy of OpenSSL's own with one function replaced; it
    // and what the key's extra data leads to are never freed.
    let done = unsafe {
        let method = EC_KEY_METHOD_new(EC_KEY_OpenSSL());
        if method.is_null() || slot < 0 {
            return Err(ErrorStack::get());
        }
        let (mut sign, mut setup, mut signature) =
            (std::ptr::null(), std::ptr::null(), std::ptr::null());
        EC_KEY_METHOD_get_sign(method, &raw mut sign, &raw mut setup, &raw mut signature);
        EC_KEY_METHOD_set_sign(method, sign, setup, Some(on_sign));
        EC_KEY_set_method(key.as_ptr(), method) == 1
            && EC_KEY_set_ex_data(key.as_ptr(), slot, kept.cast::<c_void>()) == 1
    };
    if !done {
        return Err(ErrorStack::get());
    }
    let pointer = key.as_ptr();
    std::mem::forget(key);
    // SAFETY: the one reference to the key goes from one wrapper to the other. That a private key
    // is in it is what the wrapper's type claims; all that is ever asked of it is to sign.
    PKey::from_ec_key(unsafe { EcKey::<Private>::from_ptr(pointer) })
}

unsafe extern "C" fn on_sign(
    hash: *const u8,
    length: c_int,
    _inverse: *const sys::BIGNUM,
    _r: *const sys::BIGNUM,
    key: *mut sys::EC_KEY,
) -> *mut sys::ECDSA_SIG {
    // SAFETY: OpenSSL passes the live key, whose extra data `signing_key` has set, and `length`
    // readable bytes.
    let (signer, hash) = unsafe {
        let signer = EC_KEY_get_ex_data(key, signer_slot()).cast::<Arc<dyn Signer>>();
        if signer.is_null() || hash.is_null() {
            return std::ptr::null_mut();
        }
        (&*signer, slice::from_raw_parts(hash, usize::try_from(length).unwrap_or(0)))
    };
    // A panic must not cross C.
    let made = catch_unwind(AssertUnwindSafe(|| {
        let signature = signer.sign(hash)?;
        let (r, s) = signature.split_at_checked(signature.len() / 2)?;
        let (r, s) = (BigNum::from_slice(r).ok()?, BigNum::from_slice(s).ok()?);
        let signature = EcdsaSig::from_private_components(r, s).ok()?;
        let pointer = signature.as_ptr();
        std::mem::forget(signature); // libssl frees it
        Some(pointer)
    }));
    made.ok().flatten().unwrap_or(std::ptr::null_mut())
}

#[cfg(test)]
mod tests {
    use openssl::ec::EcGroup;
    use openssl::hash::MessageDigest;
    use openssl::nid::Nid;
    use openssl::sign;

    use super::*;

    struct InMemory {
        key: EcKey<Private>,
        works: bool,
    }

    impl Signer for InMemory {
        fn sign(&self, hash: &[u8]) -> Option<Vec<u8>> {
            let signature = EcdsaSig::sign(hash, &self.key).ok().filter(|_| self.works)?;
            let padded = |number: &openssl::bn::BigNumRef| number.to_vec_padded(32).ok();
            Some([padded(signature.r())?, padded(signature.s())?].concat())
        }
    }

    /// A pair, and the same pair whose signatures someone else makes.
    fn pair(works: bool) -> (PKey<Private>, PKey<Private>) {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
        let key = EcKey::generate(&group).unwrap();
        let public = EcKey::from_public_key(&group, key.public_key()).unwrap();
        let plain = PKey::from_ec_key(key.clone()).unwrap();
        (plain, signing_key(&public, Arc::new(InMemory { key, works })).unwrap())
    }

    fn signed(key: &PKey<Private>) -> Result<Vec<u8>, ErrorStack> {
        let mut signer = sign::Signer::new(MessageDigest::sha256(), key)?;
        signer.sign_oneshot_to_vec(b"a transcript")
    }

    #[test]
    fn external_signer_signature_verifies() {
        let (plain, elsewhere) = pair(true);
        assert!(elsewhere.public_eq(&plain));
        for _ in 0..20 {
            let signature = signed(&elsewhere).unwrap();
            let mut verifier = sign::Verifier::new(MessageDigest::sha256(), &plain).unwrap();
            assert!(verifier.verify_oneshot(&signature, b"a transcript").unwrap());
        }
    }

    #[test]
    fn external_signer_failure_is_an_error() {
        assert!(signed(&pair(false).1).is_err());
    }
}
