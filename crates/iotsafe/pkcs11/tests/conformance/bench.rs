// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The module as programs use it: its function list, over cards in this process.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chacha20::ChaCha20Rng;
use cryptoki_sys::*;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey, EcPoint};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::x509::{X509Builder, X509NameBuilder};
use rand_core::SeedableRng;
use warifu_card::object::{KeyAttributes, KeyType, Name, access, slot};
use warifu_card::{ATR, Card, KeySource, Pin, PinScope, Reset, Settings};
use warifu_iotsafe_client::transport::{Local, Transport, TransportError};
use warifu_iotsafe_client::{CardToken, Options, Token};
use warifu_pkcs11::ffi::C_GetInterface;
use warifu_pkcs11::functions::general_purpose::{Provider, provide};
use warifu_pkcs11::slot::SlotConfig;

pub const PIN: &str = "1234";

/// The card of the slot, and whether it is present.
pub struct World {
    pub card: Mutex<(Card, ChaCha20Rng)>,
    pub absent: AtomicBool,
    /// Whether the transport panics.
    pub panics: AtomicBool,
}

static WORLD: LazyLock<Mutex<Arc<World>>> = LazyLock::new(|| Mutex::new(world(None)));
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A card with the usual containers, a certificate for its key, a persistent empty container, and
/// perhaps a PIN.
pub fn world(pin: Option<PinScope>) -> Arc<World> {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let pin = pin.map(|scope| Pin::new(PIN, scope, 3).unwrap());
    let settings = Settings { pin, ..Settings::default() };
    let mut card = Card::with_usual_slots(settings, &mut rng).unwrap();
    let both = access::READ | access::UPDATE;
    let persistent = KeyAttributes::general(KeyType::Secp256r1Persistent);
    card.add_key_pair(Name::slot(8, "spare", both), persistent, KeySource::Empty, &mut rng)
        .unwrap();
    let brainpool = KeyAttributes::general(KeyType::BrainpoolP256r1Persistent);
    let name = Name::slot(9, "brainpool", access::READ);
    card.add_key_pair(name, brainpool, KeySource::Generate, &mut rng).unwrap();
    let point = *card.export_public_key(&[slot::CLIENT_KEY]).unwrap().bytes();
    card.write_file(&[slot::CLIENT_CERTIFICATE], &certificate(&point)).unwrap();
    let card = Mutex::new((card, rng));
    Arc::new(World { card, absent: AtomicBool::new(false), panics: AtomicBool::new(false) })
}

/// A certificate for a public key.
pub fn certificate(point: &[u8; 65]) -> Vec<u8> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let mut context = openssl::bn::BigNumContext::new().unwrap();
    let point = EcPoint::from_bytes(&group, point, &mut context).unwrap();
    let public = PKey::from_ec_key(EcKey::from_public_key(&group, &point).unwrap()).unwrap();
    let signer = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let name = |text| {
        let mut name = X509NameBuilder::new().unwrap();
        name.append_entry_by_text("CN", text).unwrap();
        name.build()
    };
    let mut builder = X509Builder::new().unwrap();
    builder.set_version(2).unwrap();
    builder.set_subject_name(&name("meter")).unwrap();
    builder.set_issuer_name(&name("authority")).unwrap();
    let serial = BigNum::from_u32(0x80_01).unwrap().to_asn1_integer().unwrap();
    builder.set_serial_number(&serial).unwrap();
    let time = |text| openssl::asn1::Asn1Time::from_str(text).unwrap();
    builder.set_not_before(&time("20260102000000Z")).unwrap();
    builder.set_not_after(&time("20360102000000Z")).unwrap();
    builder.set_pubkey(&public).unwrap();
    builder.sign(&signer, MessageDigest::sha256()).unwrap();
    builder.build().to_der().unwrap()
}

/// A card that can be removed.
struct Removable {
    world: Arc<World>,
    inner: Box<dyn Transport>,
}

impl Removable {
    fn check(&self) -> Result<(), TransportError> {
        assert!(!self.world.panics.load(Ordering::SeqCst), "a panic for the test");
        match self.world.absent.load(Ordering::SeqCst) {
            true => Err(TransportError::Gone("the card was removed".to_owned())),
            false => Ok(()),
        }
    }
}

impl Transport for Removable {
    fn exchange(&mut self, apdu: &[u8], deadline: Instant) -> Result<Vec<u8>, TransportError> {
        self.check()?;
        self.inner.exchange(apdu, deadline)
    }

    fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError> {
        self.check()?;
        self.inner.reset(deadline)
    }

    fn name(&self) -> String {
        "test".to_owned()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn provider() -> Provider {
    Box::new(|| {
        let world = Arc::clone(&locked(&WORLD));
        let (card, other) = (Arc::clone(&world), Arc::clone(&world));
        let exchange = move |apdu: &[u8]| {
            let (card, rng) = &mut *locked(&card.card);
            card.transmit(apdu, rng).to_bytes()
        };
        let reset = move || {
            locked(&other.card).0.reset(Reset::Cold);
            ATR.to_vec()
        };
        let inner: Box<dyn Transport> = Box::new(Local::new(exchange, reset));
        let transport = Box::new(Removable { world, inner });
        let token: Box<dyn Token> = Box::new(CardToken::new(transport, Options::default()));
        let config = SlotConfig {
            location: "test".to_owned(),
            label: None,
            card_hashes: false,
            replace_keys: false,
            timeout: Duration::from_secs(5),
        };
        vec![(config, token)]
    })
}

/// The module, initialised; finalised when dropped. One at a time in the process.
pub struct Bench {
    pub f: &'static CK_FUNCTION_LIST_3_0,
    pub world: Arc<World>,
    _alone: MutexGuard<'static, ()>,
}

/// Calls a function of the list.
macro_rules! call {
    ($bench:expr, $name:ident $(, $argument:expr)* $(,)?) => {
        // SAFETY: the tests give pointers that are null or valid for the lengths beside them.
        unsafe { $bench.f.$name.unwrap()($($argument),*) }
    };
}

/// The functions, whatever the state of the library.
pub fn functions() -> &'static CK_FUNCTION_LIST_3_0 {
    let mut interface: *mut CK_INTERFACE = ptr::null_mut();
    // SAFETY: nulls ask for the preferred interface; there is room for a pointer.
    unsafe {
        assert_eq!(C_GetInterface(ptr::null_mut(), ptr::null_mut(), &mut interface, 0), CKR_OK);
        &*(*interface).pFunctionList.cast::<CK_FUNCTION_LIST_3_0>()
    }
}

impl Bench {
    /// With a card that has a PIN, or not.
    pub fn new(pin: Option<PinScope>) -> Bench {
        let alone = locked(&ONE_AT_A_TIME);
        provide(provider());
        let world = world(pin);
        *locked(&WORLD) = Arc::clone(&world);
        let bench = Bench { f: functions(), world, _alone: alone };
        assert_eq!(call!(bench, C_Initialize, ptr::null_mut()), CKR_OK);
        bench
    }

    pub fn open(&self, flags: CK_FLAGS) -> CK_SESSION_HANDLE {
        let mut session = 0;
        let flags = flags | CKF_SERIAL_SESSION;
        assert_eq!(
            call!(self, C_OpenSession, 0, flags, ptr::null_mut(), None, &mut session),
            CKR_OK
        );
        session
    }

    pub fn login(&self, session: CK_SESSION_HANDLE, pin: &str) -> CK_RV {
        call!(self, C_Login, session, CKU_USER, pin.as_ptr().cast_mut(), pin.len() as CK_ULONG)
    }

    /// All handles of what matches.
    pub fn find(
        &self,
        session: CK_SESSION_HANDLE,
        attributes: &mut [CK_ATTRIBUTE],
    ) -> Vec<CK_OBJECT_HANDLE> {
        let count = attributes.len() as CK_ULONG;
        assert_eq!(call!(self, C_FindObjectsInit, session, attributes.as_mut_ptr(), count), CKR_OK);
        let mut found = Vec::new();
        loop {
            let (mut handle, mut count) = (0, 0);
            assert_eq!(call!(self, C_FindObjects, session, &mut handle, 1, &mut count), CKR_OK);
            if count == 0 {
                break;
            }
            found.push(handle);
        }
        assert_eq!(call!(self, C_FindObjectsFinal, session), CKR_OK);
        found
    }

    /// The one object of a class and CKA_ID.
    pub fn one(
        &self,
        session: CK_SESSION_HANDLE,
        class: CK_OBJECT_CLASS,
        id: u8,
    ) -> CK_OBJECT_HANDLE {
        let (mut class, mut id) = (class, [id]);
        let mut attributes = [number(CKA_CLASS, &mut class), bytes(CKA_ID, &mut id)];
        let found = self.find(session, &mut attributes);
        assert_eq!(found.len(), 1);
        found[0]
    }

    /// An attribute's value, or what was returned.
    pub fn get(
        &self,
        session: CK_SESSION_HANDLE,
        object: CK_OBJECT_HANDLE,
        kind: CK_ATTRIBUTE_TYPE,
    ) -> Result<Vec<u8>, CK_RV> {
        let mut attribute = CK_ATTRIBUTE { type_: kind, pValue: ptr::null_mut(), ulValueLen: 0 };
        match call!(self, C_GetAttributeValue, session, object, &mut attribute, 1) {
            CKR_OK => {}
            rv => return Err(rv),
        }
        let mut value = vec![0; attribute.ulValueLen as usize];
        attribute.pValue = value.as_mut_ptr().cast();
        match call!(self, C_GetAttributeValue, session, object, &mut attribute, 1) {
            CKR_OK => Ok(value),
            rv => Err(rv),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        call!(self, C_Finalize, ptr::null_mut());
    }
}

/// An attribute of bytes.
pub fn bytes(type_: CK_ATTRIBUTE_TYPE, value: &mut [u8]) -> CK_ATTRIBUTE {
    let length = value.len() as CK_ULONG;
    CK_ATTRIBUTE { type_, pValue: value.as_mut_ptr().cast(), ulValueLen: length }
}

/// An attribute that is a number.
pub fn number(type_: CK_ATTRIBUTE_TYPE, value: &mut CK_ULONG) -> CK_ATTRIBUTE {
    let length = size_of::<CK_ULONG>() as CK_ULONG;
    CK_ATTRIBUTE { type_, pValue: ptr::from_mut(value).cast(), ulValueLen: length }
}

/// A mechanism without parameter.
pub fn mechanism(kind: CK_MECHANISM_TYPE) -> CK_MECHANISM {
    CK_MECHANISM { mechanism: kind, pParameter: ptr::null_mut(), ulParameterLen: 0 }
}
