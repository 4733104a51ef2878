// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls joined to operations: one encryption is what happens to a context from its initialisation
//! to its last call, whoever makes the calls.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;
use std::sync::Mutex;

use crate::functions::{Direction, FUNCTIONS, Role};
use crate::message;
use crate::real;
use crate::record::{AtSite, File, Number, Site, Total, now};
use crate::site::{self, Chain, DEPTH, Slot};

/// What an operation turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Class {
    /// Plaintext went in.
    Encrypt,
    /// Ciphertext went in.
    Decrypt,
    /// A MAC alone, made or checked: HMAC, or an AEAD that was given nothing to encrypt (GMAC).
    Mac,
    /// A signature with a private key.
    Sign,
    /// The check of one.
    Verify,
    /// Random bytes: nonces, above all.
    Random,
}

impl Class {
    /// As the file names them.
    pub const NAMES: &[&str] = &["encrypt", "decrypt", "mac", "sign", "verify", "random"];
}

/// Where the time of an operation goes.
#[derive(Clone, Copy)]
#[repr(usize)]
pub enum Part {
    /// Contexts made, emptied, ended.
    Context,
    /// Cipher, key and nonce set.
    Init,
    /// Bytes.
    Update,
    /// The last call.
    Final,
    /// Tags read and set, and other controls.
    Tag,
}

/// As the file names them.
pub const PARTS: &[&str] = &["context", "init", "update", "final", "tag"];

/// An operation that is under way, or a context that waits for its next.
#[derive(Clone, Copy)]
struct Operation {
    /// What its functions' names say.
    asked: Class,
    /// Bytes were encrypted or decrypted.
    has_payload: bool,
    /// An update came since the last initialisation.
    has_data: bool,
    begun: bool,
    failed: bool,
    chain: Chain,
    algorithm: Algorithm,
    bytes: u64,
    aad_bytes: u64,
    parts: [(u64, u64); PARTS.len()],
    /// The last operation's class and site, which what comes after its end belongs to.
    before: Option<(Class, &'static Site)>,
}

/// An algorithm by OpenSSL's number for it (NID), or one of these.
type Algorithm = u64;
const UNNAMED: Algorithm = 0;
const HMAC: Algorithm = u64::MAX;
const KEY_PAIR: Algorithm = u64::MAX - 1;
const GENERATOR: Algorithm = u64::MAX - 2;
const NOTHING: Algorithm = u64::MAX - 3;

/// The names of ciphers, asked for when their numbers are met first: by the end of an operation,
/// its cipher may be gone.
static NAMES: Mutex<Vec<(Algorithm, String)>> = Mutex::new(Vec::new());

fn name_of(algorithm: Algorithm) -> String {
    match algorithm {
        HMAC => "HMAC".to_owned(),
        KEY_PAIR => "key pair".to_owned(),
        GENERATOR => "RAND".to_owned(),
        NOTHING => "nothing".to_owned(),
        id => NAMES
            .lock()
            .ok()
            .and_then(|names| names.iter().find(|entry| entry.0 == id).map(|it| it.1.clone()))
            .unwrap_or_default(),
    }
}

impl Operation {
    fn new() -> Operation {
        Operation {
            asked: Class::Encrypt,
            has_payload: false,
            has_data: false,
            begun: false,
            failed: false,
            chain: [0; DEPTH],
            algorithm: UNNAMED,
            bytes: 0,
            aad_bytes: 0,
            parts: [(0, 0); PARTS.len()],
            before: None,
        }
    }
}

#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }
    fn write_usize(&mut self, address: usize) {
        self.0 = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

type Contexts = HashMap<usize, Operation, BuildHasherDefault<AddressHasher>>;
const SHARDS: usize = 64;
static CONTEXTS: [Mutex<Contexts>; SHARDS] =
    [const { Mutex::new(HashMap::with_hasher(BuildHasherDefault::new())) }; SHARDS];

thread_local! {
    /// OpenSSL calls itself: only what the program called counts.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Makes the call, and puts it on record.
pub fn observe(
    file: &'static File,
    index: usize,
    arguments: &[usize; 6],
    slot: Slot,
    call: impl Fn() -> usize,
) -> usize {
    let function = &FUNCTIONS[index];
    if INSIDE.replace(true) {
        if matches!(function.role, Role::CipherUpdate) {
            file.add(Number::inner_updates, 1);
            message::note_inner();
        }
        return call();
    }
    let freed = matches!(function.role, Role::Free).then(|| take(arguments[0])).flatten();
    let begun = now();
    let result = crate::swap::call(index, arguments, slot, call);
    let ns = now().saturating_sub(begun);
    file.add(Number::calls, 1);
    Call { file, index, arguments, slot, result, ns }.note(function.role, freed);
    INSIDE.set(false);
    result
}

fn take(context: usize) -> Option<Operation> {
    shard(context).lock().ok()?.remove(&context)
}

fn shard(context: usize) -> &'static Mutex<Contexts> {
    &CONTEXTS[(context >> 5) % SHARDS]
}

/// A call that was made.
struct Call<'a> {
    file: &'static File,
    index: usize,
    arguments: &'a [usize; 6],
    slot: Slot,
    result: usize,
    ns: u64,
}

impl Call<'_> {
    fn note(&self, role: Role, freed: Option<Operation>) {
        let [a, b, c, _, e, _] = *self.arguments;
        match role {
            Role::New => {
                if self.result != 0 {
                    self.with(self.result, |operation| {
                        *operation = Operation::new();
                        self.spend(operation);
                    });
                }
            }
            Role::Free => {
                if let Some(mut operation) = freed {
                    self.spend(&mut operation);
                    self.end_unfinished(&mut operation);
                    self.settle(&mut operation);
                }
            }
            Role::Reset => {
                self.with(a, |operation| {
                    self.spend(operation);
                    self.end_unfinished(operation);
                    self.settle(operation);
                    operation.begun = false;
                });
            }
            Role::Copy => {
                let from = self.with(b, |from| *from);
                self.with(a, |operation| {
                    if let Some(from) = from {
                        *operation = Operation { parts: [(0, 0); PARTS.len()], ..from };
                    }
                    self.spend(operation);
                });
            }
            Role::CipherInit(direction) => {
                let class = match direction {
                    Direction::Encrypt => Class::Encrypt,
                    Direction::Decrypt => Class::Decrypt,
                    // -1 leaves it as it was, and is so rare that a name settles it.
                    Direction::Argument(at) if self.arguments[at] as c_int == 0 => Class::Decrypt,
                    Direction::Argument(_) => Class::Encrypt,
                };
                self.begin(class, (b != 0).then(|| self.cipher(b)));
            }
            Role::CipherUpdate => self.update(b != 0, e as c_int),
            Role::CipherWhole if b == 0 && c == 0 => self.finish(a, succeeded(self.result)),
            Role::CipherWhole => self.update(b != 0, self.arguments[3] as c_int),
            Role::CipherFinal => self.finish(a, succeeded(self.result)),
            Role::Control => {
                self.with(a, |operation| {
                    self.spend(operation);
                    self.settle(operation);
                });
            }
            Role::MacInit(class, key) => {
                if key.is_none_or(|at| self.is_hmac(self.arguments[at])) {
                    self.begin(Class::Mac, Some(HMAC));
                } else {
                    self.begin(class, Some(KEY_PAIR));
                }
            }
            Role::MacUpdate => self.more(a, c as u64),
            Role::MacFinal { asks_length: true } if b == 0 => {
                self.with(a, |operation| self.spend(operation));
            }
            Role::MacFinal { .. } => self.finish(a, succeeded(self.result)),
            Role::SignWhole if b == 0 => {
                self.with(a, |operation| self.spend(operation));
            }
            Role::SignWhole | Role::VerifyWhole => {
                self.more(a, e as u64);
                self.finish_counted(a, succeeded(self.result), false);
            }
            Role::Hmac => {
                let mut operation = Operation::new();
                operation.asked = Class::Mac;
                operation.begun = true;
                operation.chain = self.chain();
                operation.algorithm = HMAC;
                operation.aad_bytes = e as u64;
                self.spend(&mut operation);
                self.end(&mut operation, self.result != 0);
            }
            Role::Random(at) => {
                let mut operation = Operation::new();
                operation.asked = Class::Random;
                operation.begun = true;
                operation.chain = self.chain();
                operation.algorithm = GENERATOR;
                operation.bytes = u64::try_from(self.arguments[at] as c_int).unwrap_or(0);
                self.spend(&mut operation);
                self.end(&mut operation, succeeded(self.result));
            }
            // The costliest way through an operation that there is in practice: a new context.
            Role::Nothing(Part::Init) => {
                self.begin(Class::Encrypt, Some(NOTHING));
            }
            Role::Nothing(Part::Final) => self.finish(a, true),
            Role::Nothing(_) => self.update(true, 16),
        }
    }

    /// Runs `act` on a context's operation, which is made if it is not known.
    fn with<T>(&self, context: usize, act: impl FnOnce(&mut Operation) -> T) -> Option<T> {
        let mut contexts = shard(context).lock().ok()?;
        Some(act(contexts.entry(context).or_insert_with(Operation::new)))
    }

    fn chain(&self) -> Chain {
        site::chain(self.slot)
    }

    fn spend(&self, operation: &mut Operation) {
        let part = &mut operation.parts[FUNCTIONS[self.index].part() as usize];
        part.0 = part.0.saturating_add(1);
        part.1 = part.1.saturating_add(self.ns);
    }

    fn begin(&self, class: Class, algorithm: Option<Algorithm>) {
        let chain = self.chain();
        self.with(self.arguments[0], |operation| {
            if operation.has_data {
                self.end_unfinished(operation);
            }
            // Cipher first, then key and nonce: two calls, one operation, which the first began.
            if !operation.begun {
                operation.chain = chain;
                operation.begun = true;
            }
            if let Some(algorithm) = algorithm {
                operation.algorithm = algorithm;
            }
            operation.asked = class;
            operation.failed |= !succeeded(self.result);
            self.spend(operation);
        });
    }

    fn update(&self, has_output: bool, bytes: c_int) {
        self.with(self.arguments[0], |operation| {
            let bytes = u64::try_from(bytes).unwrap_or(0);
            if has_output {
                operation.bytes = operation.bytes.saturating_add(bytes);
                operation.has_payload |= bytes > 0;
            } else {
                operation.aad_bytes = operation.aad_bytes.saturating_add(bytes);
            }
            operation.has_data = true;
            operation.failed |= !succeeded(self.result);
            self.spend(operation);
        });
    }

    /// Bytes of a MAC or a signature.
    fn more(&self, context: usize, bytes: u64) {
        self.with(context, |operation| {
            operation.aad_bytes = operation.aad_bytes.saturating_add(bytes);
            operation.has_data = true;
            self.spend(operation);
        });
    }

    fn finish(&self, context: usize, succeeded: bool) {
        self.finish_counted(context, succeeded, true);
    }

    fn finish_counted(&self, context: usize, succeeded: bool, spend: bool) {
        self.with(context, |operation| {
            if spend {
                self.spend(operation);
            }
            self.end(operation, succeeded);
        });
    }

    /// An operation that never came to its last call.
    fn end_unfinished(&self, operation: &mut Operation) {
        if operation.has_data {
            self.end(operation, false);
        }
    }

    /// Puts an operation on record; the context is ready for the next.
    fn end(&self, operation: &mut Operation, succeeded: bool) {
        let class = match operation.asked {
            Class::Encrypt | Class::Decrypt if !operation.has_payload => Class::Mac,
            other => other,
        };
        let failed = u64::from(operation.failed || !succeeded);
        let ns = operation.parts.iter().map(|part| part.1).sum();
        let in_message = message::note(class, operation.bytes, ns);
        for (total, value) in [
            (Total::operations, 1),
            (Total::failed, failed),
            (Total::bytes, operation.bytes),
            (Total::aad_bytes, operation.aad_bytes),
            (Total::in_message, u64::from(in_message)),
            (Total::in_message_ns, if in_message { ns } else { 0 }),
        ] {
            self.file.total(class, total, value);
        }
        let id = operation.algorithm;
        let site = self.file.site(&operation.chain, class, id, || name_of(id));
        operation.before = site.map(|site| (class, site));
        if let Some(site) = site {
            site.add(AtSite::operations, 1);
            site.add(AtSite::failed, failed);
            site.add(AtSite::bytes, operation.bytes);
            site.add(AtSite::aad_bytes, operation.aad_bytes);
            site.add(AtSite::in_message, u64::from(in_message));
            site.took(ns);
        }
        self.file.total(class, Total::ns, ns);
        self.pay(operation);
        *operation = Operation {
            asked: operation.asked,
            algorithm: operation.algorithm,
            before: operation.before,
            ..Operation::new()
        };
    }

    /// Parts to their site.
    fn pay(&self, operation: &mut Operation) {
        if let Some((_, site)) = operation.before {
            for (index, (calls, ns)) in operation.parts.iter().enumerate() {
                if *calls > 0 {
                    site.part(index, *calls, *ns);
                }
            }
        }
        operation.parts = [(0, 0); PARTS.len()];
    }

    /// What comes between operations (the tag that was made, the end of the context) belongs to
    /// the one before.
    fn settle(&self, operation: &mut Operation) {
        if operation.begun {
            return;
        }
        if let Some((class, _)) = operation.before {
            let ns = operation.parts.iter().map(|part| part.1).sum();
            self.file.total(class, Total::ns, ns);
            if message::note_time(ns) {
                self.file.total(class, Total::in_message_ns, ns);
            }
            self.pay(operation);
        }
    }

    fn cipher(&self, cipher: usize) -> Algorithm {
        static NID: real::Helper = real::Helper::new(c"EVP_CIPHER_get_nid");
        let Some(nid) = NID.address(self.slot) else { return UNNAMED };
        // SAFETY: OpenSSL 3's EVP_CIPHER_get_nid; the program passed the cipher to OpenSSL.
        let nid = unsafe {
            let nid: unsafe extern "C" fn(usize) -> c_int = mem::transmute::<usize, _>(nid);
            u64::try_from(nid(cipher)).unwrap_or(UNNAMED)
        };
        let Ok(mut names) = NAMES.lock() else { return nid };
        if !names.iter().any(|entry| entry.0 == nid) {
            names.push((nid, self.cipher_name(cipher)));
        }
        nid
    }

    fn cipher_name(&self, cipher: usize) -> String {
        static NAME: real::Helper = real::Helper::new(c"EVP_CIPHER_get0_name");
        let Some(name) = NAME.address(self.slot) else { return String::new() };
        // SAFETY: OpenSSL 3's EVP_CIPHER_get0_name, whose string lives as long as the cipher,
        // which the program has just used.
        unsafe {
            let name: unsafe extern "C" fn(usize) -> *const c_char =
                mem::transmute::<usize, _>(name);
            let text = name(cipher);
            if text.is_null() {
                return String::new();
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }

    fn is_hmac(&self, key: usize) -> bool {
        /// NID_hmac, which EVP_PKEY_HMAC is.
        const HMAC: c_int = 855;
        static ID: real::Helper = real::Helper::new(c"EVP_PKEY_get_id");
        let Some(id) = ID.address(self.slot).filter(|_| key != 0) else { return false };
        // SAFETY: OpenSSL 3's EVP_PKEY_get_id; the program passed the key to OpenSSL.
        unsafe {
            let id: unsafe extern "C" fn(usize) -> c_int = mem::transmute::<usize, _>(id);
            id(key) == HMAC
        }
    }
}

/// OpenSSL's functions return 1, and EVP_Cipher the number of bytes.
fn succeeded(result: usize) -> bool {
    result as c_int > 0
}
