// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C_GenerateKeyPair, C_DeriveKey and C_GenerateRandom (PKCS#11 2.40 sections 5.13 and 5.14).

use std::sync::OnceLock;

use cryptoki_sys::*;
use warifu_card::crypto::SecretBytes;
use warifu_iotsafe_client::{Curve, Hash, Inventory, PinState};
use zeroize::Zeroizing;

use crate::der;
use crate::library::Library;
use crate::mechanism::{Mechanism, Parameter};
use crate::object::{Kind, Object, PrivateKey, PublicKey, Secret};
use crate::rv::{Result, Rv, fail};
use crate::session::Session;
use crate::slot::Slot;
use crate::template::{OF_PUBLIC_KEYS, Template};

/// The most random bytes of one call; the card gives 256 an exchange.
const RANDOM_MAX_BYTES: usize = 1 << 20;

/// What either half's template may have beside [`OF_PUBLIC_KEYS`]: tools give both halves the same.
const OF_PAIRS: [CK_ATTRIBUTE_TYPE; 13] = [
    CKA_START_DATE,
    CKA_END_DATE,
    CKA_DECRYPT,
    CKA_SIGN,
    CKA_SIGN_RECOVER,
    CKA_UNWRAP,
    CKA_SENSITIVE,
    CKA_EXTRACTABLE,
    CKA_ALWAYS_AUTHENTICATE,
    CKA_WRAP_WITH_TRUSTED,
    CKA_ALLOWED_MECHANISMS,
    CKA_MODULUS_BITS,
    CKA_PUBLIC_KEY_INFO,
];

/// C_GenerateKeyPair. The card generates in places that it was made with: one is chosen by
/// CKA_ID or CKA_LABEL if they name one, else the first that fits. CKA_TOKEN false means a
/// volatile place. Gives the handles of the public and the private key.
pub fn generate_pair(
    library: &Library,
    session: CK_SESSION_HANDLE,
    mechanism: &Mechanism,
    public: &Template,
    private: &Template,
) -> Result<(CK_OBJECT_HANDLE, CK_OBJECT_HANDLE)> {
    let session = library.session(session)?;
    if mechanism.kind != CKM_EC_KEY_PAIR_GEN {
        return fail(CKR_MECHANISM_INVALID);
    }
    mechanism.no_parameter()?;
    let curve = check_pair(public, private)?;
    let on_token = match (public.flag(CKA_TOKEN)?, private.flag(CKA_TOKEN)?) {
        (Some(one), Some(two)) if one != two => return fail(CKR_TEMPLATE_INCONSISTENT),
        (one, two) => one.or(two).unwrap_or(false),
    };
    if on_token && !session.read_write {
        return fail(CKR_SESSION_READ_ONLY);
    }
    let slot = &session.slot;
    let pinned = slot.pin_state()? != PinState::Absent;
    if pinned && !slot.is_logged_in() {
        return fail(CKR_USER_NOT_LOGGED_IN);
    }
    let inventory = slot.ask(|token, deadline| token.objects(deadline))?;
    let at = place(slot, &inventory, curve, on_token, [private, public])?;
    let place = &inventory.private_keys[at];
    let pair = slot.ask(|token, deadline| token.generate(&place.id, deadline))?;
    let attributes = place.attributes;
    let public_id = pair.public_id.or_else(|| place.public_id.clone());
    let own = if on_token { None } else { Some(session.handle) };
    // A token's label and identifier are the card's; a session's may be the caller's.
    let named = |template: &Template, kind, of_card: &[u8]| match own {
        Some(_) => template.get_filled(kind).unwrap_or(of_card).to_vec(),
        None => of_card.to_vec(),
    };
    let label = place.label.as_bytes();
    let given = [private, public].iter().find_map(|template| template.get_filled(CKA_LABEL));
    if let Some(given) = given.filter(|given| on_token && *given != label) {
        slot.tell(&format!(
            "the label {:?} is not kept: the new key's place has none, and no command gives it one",
            String::from_utf8_lossy(given)
        ));
    }
    let half = |kind, template: &Template, private| Object {
        kind,
        label: named(template, CKA_LABEL, label),
        id: named(template, CKA_ID, &place.id),
        private,
        session: own,
        local: true,
        subject: Vec::new(),
    };
    let private_key = Kind::PrivateKey(PrivateKey {
        card_id: place.id.clone(),
        curve,
        hashes: Hash::ALL.into_iter().filter(|hash| attributes.signs_with(*hash)).collect(),
        sign: attributes.may_sign(),
        derive: attributes.may_derive(),
        public_id: public_id.clone(),
        replaceable: true,
    });
    let public_key = Kind::PublicKey(PublicKey {
        card_id: public_id,
        curve,
        verify: attributes.may_sign(),
        point: OnceLock::from(pair.point),
    });
    library.end_operations_with(slot, &place.id);
    let mut objects = slot.objects();
    objects.forget_key(&place.id);
    let public = objects.add(half(public_key, public, false));
    let private = objects.add(half(private_key, private, pinned));
    Ok((public, private))
}

/// Whether both templates can be of a key pair that the card generates; its curve.
fn check_pair(public: &Template, private: &Template) -> Result<Curve> {
    let inconsistent = CKR_TEMPLATE_INCONSISTENT;
    for template in [public, private] {
        template.only(&[&OF_PUBLIC_KEYS, &OF_PAIRS])?;
    }
    public.expect(CKA_CLASS, CKO_PUBLIC_KEY, inconsistent)?;
    private.expect(CKA_CLASS, CKO_PRIVATE_KEY, inconsistent)?;
    for template in [public, private] {
        template.expect(CKA_KEY_TYPE, CKK_EC, inconsistent)?;
        template.flag(CKA_PRIVATE)?;
    }
    for kind in [CKA_ENCRYPT, CKA_VERIFY_RECOVER, CKA_WRAP, CKA_TRUSTED] {
        public.flag(kind)?;
    }
    // python-pkcs11 asks for everything that is not refused, so usages that no elliptic-curve key
    // has are passed over; a key that may leave the card is refused.
    private.expect_flag(CKA_EXTRACTABLE, false)?;
    private.expect_flag(CKA_SENSITIVE, true)?;
    private.expect_flag(CKA_ALWAYS_AUTHENTICATE, false)?;
    let params = public.get(CKA_EC_PARAMS).ok_or(Rv(CKR_TEMPLATE_INCOMPLETE))?;
    der::curve(params).ok_or(Rv(CKR_CURVE_NOT_SUPPORTED))
}

/// The place to generate in.
fn place(
    slot: &Slot,
    inventory: &Inventory,
    curve: Curve,
    on_token: bool,
    templates: [&Template; 2],
) -> Result<usize> {
    let wanted = |kind| templates.iter().find_map(|template| template.get_filled(kind));
    let places = inventory.private_keys.iter().enumerate().filter(|(_, place)| {
        let attributes = place.attributes;
        let fits = attributes.may_generate() && attributes.curve() == Some(curve);
        fits && attributes.is_volatile() != on_token
    });
    let mut places: Vec<_> = places.collect();
    if places.is_empty() {
        return fail(CKR_TEMPLATE_INCONSISTENT);
    }
    if on_token {
        // A token's names are what the card was made with: others cannot be kept.
        if let Some(id) = wanted(CKA_ID) {
            places.retain(|(_, place)| place.id == id);
        }
        if let Some(label) = wanted(CKA_LABEL) {
            places.retain(|(_, place)| place.label.is_empty() || place.label.as_bytes() == label);
        }
        if places.is_empty() {
            return fail(CKR_TEMPLATE_INCONSISTENT);
        }
    }
    let is_empty = |place: &warifu_iotsafe_client::PrivateKey| {
        place.attributes.filled == Some(false) || slot.objects().is_destroyed(&place.id)
    };
    let empty = places.iter().find(|(_, place)| is_empty(place));
    // A volatile place may hold what an ended program left; one of this program's is not touched.
    let reusable = || {
        let free = |id: &[u8]| !slot.objects().is_taken(id);
        let may = |id: &[u8]| if on_token { slot.replace_keys } else { free(id) };
        places.iter().find(|(_, place)| may(&place.id))
    };
    let (at, _) = empty.or_else(reusable).ok_or(Rv(CKR_DEVICE_MEMORY))?;
    Ok(*at)
}

/// C_DeriveKey with CKM_ECDH1_DERIVE.
pub fn derive(
    library: &Library,
    session: CK_SESSION_HANDLE,
    mechanism: &Mechanism,
    base: CK_OBJECT_HANDLE,
    template: &Template,
) -> Result<CK_OBJECT_HANDLE> {
    let session = library.session(session)?;
    if mechanism.kind != CKM_ECDH1_DERIVE {
        return fail(CKR_MECHANISM_INVALID);
    }
    let Parameter::Ecdh { kdf: CKD_NULL, shared, public } = &mechanism.parameter else {
        return fail(CKR_MECHANISM_PARAM_INVALID);
    };
    if !shared.is_empty() {
        // CKD_NULL takes none (PKCS#11 2.40 mechanisms section 2.3.7).
        return fail(CKR_MECHANISM_PARAM_INVALID);
    }
    let base = session.slot.object(base, CKR_KEY_HANDLE_INVALID)?;
    let key = match &base.kind {
        Kind::PrivateKey(key) if key.derive => key,
        Kind::PrivateKey(_) => return fail(CKR_KEY_FUNCTION_NOT_PERMITTED),
        _ => return fail(CKR_KEY_TYPE_INCONSISTENT),
    };
    let peer = der::point(public).filter(|point| key.curve.point(point).is_some());
    let peer = peer.ok_or(Rv(CKR_MECHANISM_PARAM_INVALID))?;
    let wanted = Wanted::of(&session, template)?;
    let value = session.slot.ask(|token, deadline| token.derive(&key.card_id, &peer, deadline))?;
    Ok(session.slot.objects().add(wanted.object(&session, template, value.expose())?))
}

/// What is asked of a derived key.
struct Wanted {
    key_type: CK_KEY_TYPE,
    length: usize,
    sensitive: bool,
    extractable: bool,
    private: bool,
}

impl Wanted {
    fn of(session: &Session, template: &Template) -> Result<Wanted> {
        template.expect(CKA_CLASS, CKO_SECRET_KEY, CKR_TEMPLATE_INCONSISTENT)?;
        if template.flag(CKA_TOKEN)? == Some(true) {
            // What the card gave out it does not take back.
            let rv =
                if session.read_write { CKR_TOKEN_WRITE_PROTECTED } else { CKR_SESSION_READ_ONLY };
            return fail(rv);
        }
        if template.get(CKA_VALUE).is_some() {
            return fail(CKR_TEMPLATE_INCONSISTENT);
        }
        let key_type = template.number(CKA_KEY_TYPE)?.unwrap_or(CKK_GENERIC_SECRET);
        let length = template.number(CKA_VALUE_LEN)?.map(|length| length as usize);
        let length = match (key_type, length) {
            (CKK_GENERIC_SECRET, None) => 32,
            (CKK_GENERIC_SECRET, Some(length @ 1..=32)) => length,
            (CKK_AES, Some(length @ (16 | 24 | 32))) => length,
            (CKK_AES, None) => return fail(CKR_TEMPLATE_INCOMPLETE),
            (CKK_GENERIC_SECRET | CKK_AES, Some(_)) => return fail(CKR_ATTRIBUTE_VALUE_INVALID),
            _ => return fail(CKR_TEMPLATE_INCONSISTENT),
        };
        let private = template.flag(CKA_PRIVATE)?.unwrap_or(session.slot.is_logged_in());
        if private && !session.slot.is_logged_in() && session.slot.pin_state()? != PinState::Absent
        {
            return fail(CKR_USER_NOT_LOGGED_IN);
        }
        Ok(Wanted {
            key_type,
            length,
            sensitive: template.flag(CKA_SENSITIVE)?.unwrap_or(false),
            extractable: template.flag(CKA_EXTRACTABLE)?.unwrap_or(true),
            private,
        })
    }

    fn object(&self, session: &Session, template: &Template, value: &[u8]) -> Result<Object> {
        // Truncation takes bytes from the leading end (PKCS#11 2.40 mechanisms section 2.3.8).
        let skipped = value.len().checked_sub(self.length).ok_or(Rv(CKR_DEVICE_ERROR))?;
        Ok(Object {
            kind: Kind::Secret(Secret {
                key_type: self.key_type,
                value: SecretBytes::new(value[skipped..].to_vec()),
                sensitive: self.sensitive,
                extractable: self.extractable,
            }),
            label: template.get(CKA_LABEL).unwrap_or_default().to_vec(),
            id: template.get(CKA_ID).unwrap_or_default().to_vec(),
            private: self.private,
            session: Some(session.handle),
            local: false,
            subject: Vec::new(),
        })
    }
}

/// C_GenerateRandom, from the card.
pub fn random(
    library: &Library,
    session: CK_SESSION_HANDLE,
    length: usize,
) -> Result<Zeroizing<Vec<u8>>> {
    let session = library.session(session)?;
    if length > RANDOM_MAX_BYTES {
        return fail(CKR_ARGUMENTS_BAD);
    }
    let mut bytes = Zeroizing::new(vec![0; length]);
    if length > 0 {
        session.slot.ask(|token, deadline| token.random(&mut bytes, deadline))?;
    }
    Ok(bytes)
}
