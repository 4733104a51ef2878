// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any bytes are calls to the PKCS#11 module, with templates, mechanisms and rooms of any kind that
//! a caller may give (pointers are null or valid for their lengths). No call panics, each returns
//! what the module has a name for, and none writes beyond the room that it was given.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each of the many calls is safe for the one reason above: its pointers are null, or \
              valid for the lengths that go with them"
)]

use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use cryptoki_sys::*;
use warifu_card::object::{KeyAttributes, KeyType, Name, access};
use warifu_card::{ATR, Card, KeySource, Pin, PinScope, Reset, Settings};
use warifu_iotsafe_client::transport::Local;
use warifu_iotsafe_client::{CardToken, Options, Token};
use warifu_pkcs11::ffi::*;
use warifu_pkcs11::functions::general_purpose::provide;
use warifu_pkcs11::rv;
use warifu_pkcs11::slot::SlotConfig;

/// What lies behind every room.
const CANARY: u8 = 0xa5;
const CANARY_BYTES: usize = 16;

/// Attribute types that mean something; others come from the input.
const KINDS: [CK_ATTRIBUTE_TYPE; 24] = [
    CKA_CLASS,
    CKA_TOKEN,
    CKA_PRIVATE,
    CKA_LABEL,
    CKA_VALUE,
    CKA_KEY_TYPE,
    CKA_ID,
    CKA_SENSITIVE,
    CKA_SIGN,
    CKA_VERIFY,
    CKA_DERIVE,
    CKA_EXTRACTABLE,
    CKA_EC_PARAMS,
    CKA_EC_POINT,
    CKA_PUBLIC_KEY_INFO,
    CKA_VALUE_LEN,
    CKA_SUBJECT,
    CKA_CERTIFICATE_TYPE,
    CKA_LOCAL,
    CKA_ALLOWED_MECHANISMS,
    CKA_ALWAYS_AUTHENTICATE,
    CKA_KEY_GEN_MECHANISM,
    CKA_ENCRYPT,
    CKA_DESTROYABLE,
];
const MECHANISMS: [CK_MECHANISM_TYPE; 11] = [
    CKM_EC_KEY_PAIR_GEN,
    CKM_ECDSA,
    CKM_ECDSA_SHA1,
    CKM_ECDSA_SHA256,
    CKM_ECDSA_SHA384,
    CKM_ECDSA_SHA512,
    CKM_ECDH1_DERIVE,
    CKM_SHA256,
    CKM_SHA384,
    CKM_SHA512,
    CKM_RSA_PKCS,
];
/// secp256r1 (SEC 2 section 2.4.2).
const P256: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

/// Checks one input.
pub fn check(bytes: &[u8]) {
    static CARD: Once = Once::new();
    CARD.call_once(|| assert!(provide(Box::new(slots))));
    let mut script = Script { rest: bytes, sessions: Vec::new(), objects: Vec::new() };
    assert_eq!(call(|| unsafe { C_Initialize(ptr::null_mut()) }), CKR_OK);
    script.open(CKF_RW_SESSION);
    while !script.rest.is_empty() {
        script.step();
    }
    assert_eq!(call(|| unsafe { C_Finalize(ptr::null_mut()) }), CKR_OK);
}

/// The one slot: a card with a PIN and places to generate in.
fn slots() -> Vec<(SlotConfig, Box<dyn Token>)> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let settings = Settings { pin: Pin::new("1234", PinScope::Signing, 3), ..Settings::default() };
    let mut card = Card::with_usual_slots(settings, &mut rng).expect("a card");
    let name = Name::slot(8, "", access::READ | access::UPDATE);
    let attributes = KeyAttributes::general(KeyType::Secp256r1Persistent);
    card.add_key_pair(name, attributes, KeySource::Empty, &mut rng).expect("a place");
    let card = Arc::new(Mutex::new((card, rng)));
    let other = Arc::clone(&card);
    let exchange = move |apdu: &[u8]| {
        let (card, rng) = &mut *card.lock().expect("no panic before");
        card.transmit(apdu, rng).to_bytes()
    };
    let reset = move || {
        other.lock().expect("no panic before").0.reset(Reset::Cold);
        ATR.to_vec()
    };
    let transport = Box::new(Local::new(exchange, reset));
    let config = SlotConfig {
        location: "fuzz".to_owned(),
        label: None,
        card_hashes: false,
        replace_keys: true,
        timeout: Duration::from_secs(5),
    };
    vec![(config, Box::new(CardToken::new(transport, Options::default())))]
}

/// A call whose value the module can name; a panic in it would be CKR_GENERAL_ERROR.
fn call(call: impl FnOnce() -> CK_RV) -> CK_RV {
    let value = call();
    assert_ne!(value, CKR_GENERAL_ERROR);
    assert_ne!(rv::name(value), "CKR_?", "{value:#x}");
    value
}

/// A caller's room for a result, with what must stay as it is behind it.
struct Room {
    bytes: Vec<u8>,
    length: CK_ULONG,
    null: bool,
}

impl Room {
    fn new(size: usize) -> Room {
        // 255 stands for a caller who only asks for the length.
        Room {
            bytes: vec![CANARY; size + CANARY_BYTES],
            length: size as CK_ULONG,
            null: size == 255,
        }
    }

    fn pointer(&mut self) -> *mut u8 {
        if self.null { ptr::null_mut() } else { self.bytes.as_mut_ptr() }
    }

    fn check(&self, value: CK_RV) {
        let size = self.bytes.len() - CANARY_BYTES;
        assert!(self.bytes[size..].iter().all(|byte| *byte == CANARY));
        assert!(value != CKR_OK || self.null || self.length as usize <= size);
    }
}

/// The input, and what its calls have given so far.
struct Script<'a> {
    rest: &'a [u8],
    sessions: Vec<CK_SESSION_HANDLE>,
    objects: Vec<CK_OBJECT_HANDLE>,
}

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.rest.split_first().unwrap_or((&0, &[]));
        self.rest = rest;
        *first
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = usize::from(self.byte()).min(most).min(self.rest.len());
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken.to_vec()
    }

    /// One that was given, or a number that nobody gave.
    fn session(&mut self) -> CK_SESSION_HANDLE {
        let at = self.byte();
        *self.sessions.get(usize::from(at >> 3)).or(self.sessions.last()).unwrap_or(&99)
    }

    fn object(&mut self) -> CK_OBJECT_HANDLE {
        let at = self.byte();
        self.objects.get(usize::from(at)).copied().unwrap_or(CK_OBJECT_HANDLE::from(at))
    }

    fn open(&mut self, flags: CK_FLAGS) {
        let mut session = 0;
        let flags = flags | CKF_SERIAL_SESSION;
        let opened =
            call(|| unsafe { C_OpenSession(0, flags, ptr::null_mut(), None, &mut session) });
        if opened == CKR_OK && self.sessions.len() < 8 {
            self.sessions.push(session);
        }
    }

    /// Values that the attributes lead to, and the attributes.
    fn template(&mut self) -> Template {
        let count = self.byte() % 9;
        let mut template = Template { values: Vec::new(), attributes: Vec::new() };
        for _ in 0..count {
            let kind = self.byte();
            let kind =
                KINDS.get(usize::from(kind)).copied().unwrap_or(CK_ATTRIBUTE_TYPE::from(kind));
            let value = match self.byte() % 6 {
                0 => vec![self.byte() & 1],
                1 => CK_ULONG::from(self.byte()).to_ne_bytes().to_vec(),
                2 => P256.to_vec(),
                3 => Vec::new(),
                _ => self.bytes(80),
            };
            template.push(kind, value);
        }
        template
    }

    fn mechanism(&mut self) -> (CK_MECHANISM, Box<CK_ECDH1_DERIVE_PARAMS>, Vec<u8>) {
        let kind = self.byte();
        let kind = MECHANISMS.get(usize::from(kind)).copied().unwrap_or(kind.into());
        let mut public = self.bytes(80);
        let mut parameters = Box::new(CK_ECDH1_DERIVE_PARAMS {
            kdf: CK_EC_KDF_TYPE::from(self.byte() % 4),
            ulSharedDataLen: 0,
            pSharedData: ptr::null_mut(),
            ulPublicDataLen: public.len() as CK_ULONG,
            pPublicData: public.as_mut_ptr(),
        });
        let mut mechanism =
            CK_MECHANISM { mechanism: kind, pParameter: ptr::null_mut(), ulParameterLen: 0 };
        if self.byte() & 1 != 0 {
            mechanism.pParameter = ptr::from_mut(&mut *parameters).cast();
            mechanism.ulParameterLen = size_of::<CK_ECDH1_DERIVE_PARAMS>() as CK_ULONG;
        }
        (mechanism, parameters, public)
    }

    /// One call. SAFETY of all of them: every pointer is null or leads to as much as its length
    /// says, and lives until the call is back.
    fn step(&mut self) {
        let (which, session) = (self.byte(), self.session());
        match which % 20 {
            0 => self.open(if which & 0x80 == 0 { CKF_RW_SESSION } else { 0 }),
            1 => drop(call(|| unsafe { C_CloseSession(session) })),
            2 => {
                let mut pin = if which & 0x80 == 0 { b"1234".to_vec() } else { self.bytes(12) };
                let length = pin.len() as CK_ULONG;
                call(|| unsafe { C_Login(session, CKU_USER, pin.as_mut_ptr(), length) });
            }
            3 => drop(call(|| unsafe { C_Logout(session) })),
            4 => self.find(session),
            5 => self.attributes(session),
            6 | 7 => self.begin(session, which % 20 == 6),
            8 => self.sign(session),
            9 => {
                let mut part = self.bytes(80);
                let (data, length) = (part.as_mut_ptr(), part.len() as CK_ULONG);
                call(|| unsafe { C_SignUpdate(session, data, length) });
                call(|| unsafe { C_VerifyUpdate(session, data, length) });
                call(|| unsafe { C_DigestUpdate(session, data, length) });
            }
            10 => {
                let mut room = Room::new(self.byte().into());
                let place = room.pointer();
                let value = call(|| unsafe { C_SignFinal(session, place, &mut room.length) });
                room.check(value);
            }
            11 => self.verify(session),
            12 => self.digest(session),
            13 => self.generate(session),
            14 => self.derive(session),
            15 => {
                let mut template = self.template();
                let (mut made, count) = (0, template.count());
                let list = template.list();
                if call(|| unsafe { C_CreateObject(session, list, count, &mut made) }) == CKR_OK {
                    self.objects.push(made);
                }
            }
            16 => {
                let object = self.object();
                call(|| unsafe { C_DestroyObject(session, object) });
            }
            17 => {
                let (object, mut template) = (self.object(), self.template());
                let (list, count) = (template.list(), template.count());
                call(|| unsafe { C_SetAttributeValue(session, object, list, count) });
            }
            18 => {
                let mut room = Room::new(self.byte().into());
                let (place, length) = (room.bytes.as_mut_ptr(), room.length);
                call(|| unsafe { C_GenerateRandom(session, place, length) });
                room.check(CKR_OK);
            }
            _ => {
                let kind = CK_MECHANISM_TYPE::from(self.byte());
                // SAFETY: plain numbers, for which zeros are values.
                let mut info: CK_MECHANISM_INFO = unsafe { std::mem::zeroed() };
                call(|| unsafe { C_GetMechanismInfo(0, kind, &mut info) });
                call(|| unsafe { C_SessionCancel(session, kind << 8) });
            }
        }
    }

    fn find(&mut self, session: CK_SESSION_HANDLE) {
        let mut template = self.template();
        let (list, count) = (template.list(), template.count());
        if call(|| unsafe { C_FindObjectsInit(session, list, count) }) != CKR_OK {
            return;
        }
        let (mut handles, mut found) = ([0; 8], 0);
        let most = CK_ULONG::from(self.byte() % 9);
        let place = handles.as_mut_ptr();
        call(|| unsafe { C_FindObjects(session, place, most, &mut found) });
        assert!(found <= most);
        for handle in &handles[..found as usize] {
            if !self.objects.contains(handle) && self.objects.len() < 200 {
                self.objects.push(*handle);
            }
        }
        call(|| unsafe { C_FindObjectsFinal(session) });
    }

    fn attributes(&mut self, session: CK_SESSION_HANDLE) {
        let object = self.object();
        let kinds = self.bytes(12);
        let mut rooms: Vec<Room> = kinds.iter().map(|_| Room::new(self.byte().into())).collect();
        let places = kinds.iter().zip(&mut rooms);
        let mut attributes: Vec<CK_ATTRIBUTE> = places
            .map(|(kind, room)| CK_ATTRIBUTE {
                type_: KINDS.get(usize::from(*kind)).copied().unwrap_or((*kind).into()),
                pValue: room.pointer().cast(),
                ulValueLen: room.length,
            })
            .collect();
        let (list, count) = (attributes.as_mut_ptr(), attributes.len() as CK_ULONG);
        let value = call(|| unsafe { C_GetAttributeValue(session, object, list, count) });
        for (room, attribute) in rooms.iter_mut().zip(&attributes) {
            room.length = attribute.ulValueLen;
            room.check(value);
        }
    }

    fn begin(&mut self, session: CK_SESSION_HANDLE, signs: bool) {
        let ((mut mechanism, _parameters, _public), object) = (self.mechanism(), self.object());
        let begin = if signs { C_SignInit } else { C_VerifyInit };
        call(|| unsafe { begin(session, &mut mechanism, object) });
        if !signs {
            call(|| unsafe { C_DigestInit(session, &mut mechanism) });
        }
    }

    fn sign(&mut self, session: CK_SESSION_HANDLE) {
        let (mut data, mut room) = (self.bytes(80), Room::new(self.byte().into()));
        let (text, length, place) = (data.as_mut_ptr(), data.len() as CK_ULONG, room.pointer());
        let value = call(|| unsafe { C_Sign(session, text, length, place, &mut room.length) });
        room.check(value);
    }

    fn verify(&mut self, session: CK_SESSION_HANDLE) {
        let (mut data, mut signature) = (self.bytes(80), self.bytes(80));
        let (text, length) = (data.as_mut_ptr(), data.len() as CK_ULONG);
        let (place, room) = (signature.as_mut_ptr(), signature.len() as CK_ULONG);
        call(|| unsafe { C_Verify(session, text, length, place, room) });
        call(|| unsafe { C_VerifyFinal(session, place, room) });
    }

    fn digest(&mut self, session: CK_SESSION_HANDLE) {
        let (mut data, mut room) = (self.bytes(80), Room::new(self.byte().into()));
        let (text, length, place) = (data.as_mut_ptr(), data.len() as CK_ULONG, room.pointer());
        let value = call(|| unsafe { C_Digest(session, text, length, place, &mut room.length) });
        room.check(value);
        let mut room = Room::new(self.byte().into());
        let place = room.pointer();
        let value = call(|| unsafe { C_DigestFinal(session, place, &mut room.length) });
        room.check(value);
    }

    fn generate(&mut self, session: CK_SESSION_HANDLE) {
        let (mut mechanism, _parameters, _bytes) = self.mechanism();
        let (mut public, mut private) = (self.template(), self.template());
        if self.byte() & 1 != 0 {
            mechanism.mechanism = CKM_EC_KEY_PAIR_GEN;
            public.push(CKA_EC_PARAMS, P256.to_vec());
        }
        let (mut one, mut two) = (0, 0);
        let (publics, public_count) = (public.list(), public.count());
        let (privates, private_count) = (private.list(), private.count());
        let value = call(|| unsafe {
            C_GenerateKeyPair(
                session,
                &mut mechanism,
                publics,
                public_count,
                privates,
                private_count,
                &mut one,
                &mut two,
            )
        });
        if value == CKR_OK {
            self.objects.extend([one, two]);
        }
    }

    fn derive(&mut self, session: CK_SESSION_HANDLE) {
        let (mut mechanism, _parameters, _public) = self.mechanism();
        let (base, mut template, mut made) = (self.object(), self.template(), 0);
        let (list, count) = (template.list(), template.count());
        let value =
            call(|| unsafe { C_DeriveKey(session, &mut mechanism, base, list, count, &mut made) });
        if value == CKR_OK {
            self.objects.push(made);
        }
    }
}

struct Template {
    values: Vec<Vec<u8>>,
    attributes: Vec<CK_ATTRIBUTE>,
}

impl Template {
    fn push(&mut self, type_: CK_ATTRIBUTE_TYPE, value: Vec<u8>) {
        let (pointer, length) = (value.as_ptr().cast_mut().cast::<c_void>(), value.len());
        let pointer = if length == 0 { ptr::null_mut() } else { pointer };
        self.attributes.push(CK_ATTRIBUTE {
            type_,
            pValue: pointer,
            ulValueLen: length as CK_ULONG,
        });
        // Moving the vector leaves its bytes where they are.
        self.values.push(value);
    }

    fn list(&mut self) -> *mut CK_ATTRIBUTE {
        self.attributes.as_mut_ptr()
    }

    fn count(&self) -> CK_ULONG {
        self.attributes.len() as CK_ULONG
    }
}
