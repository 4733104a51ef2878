// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key management functions (PKCS#11 2.40 section 5.14).

use std::fmt::Write as _;
use std::sync::OnceLock;

use cryptoki_sys::*;
use warifu_card::crypto::SecretBytes;
use warifu_iotsafe_client::{Curve, Hash, Inventory, PinState};

use crate::der;
use crate::library::Library;
use crate::mechanism::{Mechanism, Parameter};
use crate::object::{Kind, Object, PrivateKey, PublicKey, Secret};
use crate::rv::{Result, Rv, fail};
use crate::session::Session;
use crate::slot::Slot;
use crate::template::{PUBLIC_KEY_ATTRIBUTES, Template};

/// The attributes of either template besides [`PUBLIC_KEY_ATTRIBUTES`]: tools give both templates
/// the same.
const KEY_PAIR_ATTRIBUTES: [CK_ATTRIBUTE_TYPE; 13] = [
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

/// C_GenerateKeyPair. The card generates in a container that it was personalised with: CKA_ID or
/// CKA_LABEL choose one, otherwise the first suitable one is used. CKA_TOKEN false means a volatile
/// container. Returns the handles of the public and the private key.
pub fn generate_key_pair(
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
    let inventory = slot.with_token(|token, deadline| token.objects(deadline))?;
    let at = choose_container(slot, &inventory, curve, on_token, [private, public])?;
    let container = &inventory.private_keys[at];
    let pair = slot.with_token(|token, deadline| token.generate(&container.id, deadline))?;
    let attributes = container.attributes;
    let public_id = pair.public_id.or_else(|| container.public_id.clone());
    let own = if on_token { None } else { Some(session.handle) };
    // The label and id of a token object are the card's; those of a session object the caller's.
    let named = |template: &Template, kind, of_card: &[u8]| match own {
        Some(_) => template.get_filled(kind).unwrap_or(of_card).to_vec(),
        None => of_card.to_vec(),
    };
    let label = container.label.as_bytes();
    let given = [private, public].iter().find_map(|template| template.get_filled(CKA_LABEL));
    if let Some(given) = given.filter(|given| on_token && *given != label) {
        slot.report(&format!(
            "the label {:?} is not stored: no command of the card sets a label",
            String::from_utf8_lossy(given)
        ));
    }
    let half = |kind, template: &Template, private| Object {
        kind,
        label: named(template, CKA_LABEL, label),
        id: named(template, CKA_ID, &container.id),
        private,
        session: own,
        local: true,
        subject: Vec::new(),
    };
    let private_key = Kind::PrivateKey(PrivateKey {
        card_id: container.id.clone(),
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
    library.end_signatures_with(slot, &container.id);
    let mut objects = slot.objects();
    objects.forget_key(&container.id);
    let public = objects.add(half(public_key, public, false));
    let private = objects.add(half(private_key, private, pinned));
    Ok((public, private))
}

/// Checks both templates; returns the curve.
fn check_pair(public: &Template, private: &Template) -> Result<Curve> {
    let inconsistent = CKR_TEMPLATE_INCONSISTENT;
    for template in [public, private] {
        template.only(&[&PUBLIC_KEY_ATTRIBUTES, &KEY_PAIR_ATTRIBUTES])?;
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
    // python-pkcs11 asks for all usages, so those that no elliptic-curve key has are ignored; an
    // extractable key is refused.
    private.expect_flag(CKA_EXTRACTABLE, false)?;
    private.expect_flag(CKA_SENSITIVE, true)?;
    private.expect_flag(CKA_ALWAYS_AUTHENTICATE, false)?;
    let params = public.get(CKA_EC_PARAMS).ok_or(Rv(CKR_TEMPLATE_INCOMPLETE))?;
    der::curve(params).ok_or(Rv(CKR_CURVE_NOT_SUPPORTED))
}

/// Chooses the container to generate in; returns its index.
fn choose_container(
    slot: &Slot,
    inventory: &Inventory,
    curve: Curve,
    on_token: bool,
    templates: [&Template; 2],
) -> Result<usize> {
    let wanted = |kind| templates.iter().find_map(|template| template.get_filled(kind));
    let containers = inventory.private_keys.iter().enumerate().filter(|(_, container)| {
        let attributes = container.attributes;
        let fits = attributes.may_generate() && attributes.curve() == Some(curve);
        fits && attributes.is_volatile() != on_token
    });
    let mut containers: Vec<_> = containers.collect();
    if containers.is_empty() {
        // Perhaps other callers of the agent are using all that there are.
        let in_use = &inventory.volatile_in_use;
        let fits = in_use.iter().any(|other| other.curve() == Some(curve)) && !on_token;
        if on_token {
            report_no_container(slot, curve, templates);
        }
        return fail(if fits { CKR_DEVICE_MEMORY } else { CKR_TEMPLATE_INCONSISTENT });
    }
    if on_token {
        // The names of containers are fixed: others cannot be stored.
        if let Some(id) = wanted(CKA_ID) {
            containers.retain(|(_, container)| container.id == id);
        }
        if let Some(label) = wanted(CKA_LABEL) {
            containers.retain(|(_, container)| {
                container.label.is_empty() || container.label.as_bytes() == label
            });
        }
        if containers.is_empty() {
            report_no_container(slot, curve, templates);
            return fail(CKR_TEMPLATE_INCONSISTENT);
        }
    }
    let is_empty = |container: &warifu_iotsafe_client::PrivateKey| {
        container.attributes.filled == Some(false) || slot.objects().is_destroyed(&container.id)
    };
    let empty = containers.iter().find(|(_, container)| is_empty(container));
    // A volatile container may hold a key that an ended program left; keys of this program are
    // kept.
    let reusable = || {
        let free = |id: &[u8]| !slot.objects().is_taken(id);
        let may = |id: &[u8]| if on_token { slot.replace_keys } else { free(id) };
        containers.iter().find(|(_, container)| may(&container.id))
    };
    let Some((at, _)) = empty.or_else(reusable) else {
        if on_token {
            report_no_container(slot, curve, templates);
        }
        return fail(CKR_DEVICE_MEMORY);
    };
    Ok(*at)
}

/// Says why no key pair can be kept on the card: the value that the function returns does not.
fn report_no_container(slot: &Slot, curve: Curve, templates: [&Template; 2]) {
    let wanted = |kind| templates.iter().find_map(|template| template.get_filled(kind));
    let mut which = String::new();
    if let Some(id) = wanted(CKA_ID) {
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = write!(which, " with the id {id}");
    }
    if let Some(label) = wanted(CKA_LABEL) {
        let _ = write!(which, " for the label {:?}", String::from_utf8_lossy(label));
    }
    slot.report(&format!(
        "the card has no empty persistent container{which} for a key pair on {}: a virtual card \
         gets some with warifu card create --spare-pairs 4; replace_keys = true in pkcs11.toml \
         replaces the key of a filled one",
        match curve {
            Curve::Secp256r1 => "secp256r1",
            Curve::BrainpoolP256r1 => "brainpoolP256r1",
        }
    ));
}

/// C_DeriveKey with CKM_ECDH1_DERIVE.
pub fn derive_key(
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
    let derived = DerivedKey::of(&session, template)?;
    let value =
        session.slot.with_token(|token, deadline| token.derive(&key.card_id, &peer, deadline))?;
    Ok(session.slot.objects().add(derived.object(&session, template, value.expose())?))
}

/// The template of a derived key.
struct DerivedKey {
    key_type: CK_KEY_TYPE,
    length: usize,
    sensitive: bool,
    extractable: bool,
    private: bool,
}

impl DerivedKey {
    fn of(session: &Session, template: &Template) -> Result<DerivedKey> {
        template.expect(CKA_CLASS, CKO_SECRET_KEY, CKR_TEMPLATE_INCONSISTENT)?;
        if template.flag(CKA_TOKEN)? == Some(true) {
            // The card cannot store a derived key.
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
        Ok(DerivedKey {
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
