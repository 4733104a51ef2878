// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects and their attributes (PKCS#11 2.40 section 4).

use std::sync::OnceLock;

use cryptoki_sys::*;
use warifu_card::crypto::SecretBytes;
use warifu_iotsafe_client::{Curve, Hash};

use crate::certificate::Certificate;
use crate::der;
use crate::mechanism;
use crate::template::{Template, flag, number};

/// An object that callers have a handle to.
#[derive(Debug)]
pub struct Object {
    /// Its kind, and what that kind has.
    pub kind: Kind,
    /// CKA_LABEL.
    pub label: Vec<u8>,
    /// CKA_ID: the same for a key pair and its certificate.
    pub id: Vec<u8>,
    /// CKA_PRIVATE: only for a user who is logged in.
    pub private: bool,
    /// The session that it ends with; None for an object of the token.
    pub session: Option<CK_SESSION_HANDLE>,
    /// Whether this module had the card generate it.
    pub local: bool,
    /// CKA_SUBJECT of a key: that of its certificate, if one is known.
    pub subject: Vec<u8>,
}

/// What objects of a kind have.
#[derive(Debug)]
pub enum Kind {
    /// CKO_PRIVATE_KEY.
    PrivateKey(PrivateKey),
    /// CKO_PUBLIC_KEY.
    PublicKey(PublicKey),
    /// CKO_CERTIFICATE.
    Certificate(Certificate),
    /// CKO_DATA: a file that is no certificate.
    Data(Vec<u8>),
    /// CKO_SECRET_KEY: what a derivation gave.
    Secret(Secret),
}

/// A private key in the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateKey {
    /// The card's id of it.
    pub card_id: Vec<u8>,
    /// Its curve.
    pub curve: Curve,
    /// The hashes that it signs with.
    pub hashes: Vec<Hash>,
    /// CKA_SIGN.
    pub sign: bool,
    /// CKA_DERIVE.
    pub derive: bool,
    /// The card's id of its public half, if there is one to read.
    pub public_id: Option<Vec<u8>>,
    /// Whether the card may generate another in its place.
    pub replaceable: bool,
}

/// A public key, of the card or of a session.
#[derive(Debug)]
pub struct PublicKey {
    /// The card's id of it; None for a session's.
    pub card_id: Option<Vec<u8>>,
    /// Its curve.
    pub curve: Curve,
    /// CKA_VERIFY.
    pub verify: bool,
    /// The point, once it has been read.
    pub point: OnceLock<[u8; 65]>,
}

/// A shared secret.
#[derive(Debug)]
pub struct Secret {
    /// CKA_KEY_TYPE.
    pub key_type: CK_KEY_TYPE,
    /// CKA_VALUE.
    pub value: SecretBytes,
    /// CKA_SENSITIVE.
    pub sensitive: bool,
    /// CKA_EXTRACTABLE.
    pub extractable: bool,
}

/// An attribute as C_GetAttributeValue finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// Its value.
    Value(Vec<u8>),
    /// It has one that nobody may see.
    Sensitive,
    /// The object has no such attribute.
    Absent,
}

impl Object {
    /// CKA_CLASS.
    #[must_use]
    pub fn class(&self) -> CK_OBJECT_CLASS {
        match self.kind {
            Kind::PrivateKey(_) => CKO_PRIVATE_KEY,
            Kind::PublicKey(_) => CKO_PUBLIC_KEY,
            Kind::Certificate(_) => CKO_CERTIFICATE,
            Kind::Data(_) => CKO_DATA,
            Kind::Secret(_) => CKO_SECRET_KEY,
        }
    }

    /// Whether it has every attribute of a template, with the same values.
    #[must_use]
    pub fn matches(&self, template: &Template) -> bool {
        template.iter().all(|(kind, value)| match self.attribute(kind) {
            Attribute::Value(own) => own == value,
            Attribute::Sensitive | Attribute::Absent => false,
        })
    }

    /// One attribute. A public key's point must have been read before.
    #[must_use]
    pub fn attribute(&self, kind: CK_ATTRIBUTE_TYPE) -> Attribute {
        use Attribute::Value;
        match kind {
            CKA_CLASS => Value(number(self.class())),
            CKA_TOKEN => Value(flag(self.session.is_none())),
            CKA_PRIVATE => Value(flag(self.private)),
            CKA_LABEL => Value(self.label.clone()),
            // The card has no command that would change or copy an object.
            CKA_MODIFIABLE | CKA_COPYABLE => Value(flag(false)),
            CKA_DESTROYABLE => Value(flag(self.is_destroyable())),
            _ => match &self.kind {
                Kind::PrivateKey(key) => self.of_private_key(key, kind),
                Kind::PublicKey(key) => self.of_public_key(key, kind),
                Kind::Certificate(certificate) => self.of_certificate(certificate, kind),
                Kind::Data(content) => of_data(content, kind),
                Kind::Secret(secret) => self.of_secret(secret, kind),
            },
        }
    }

    fn is_destroyable(&self) -> bool {
        let replaceable = matches!(&self.kind, Kind::PrivateKey(key) if key.replaceable);
        self.session.is_some() || replaceable
    }

    /// What all keys have (section 4.7).
    fn of_any_key(&self, kind: CK_ATTRIBUTE_TYPE) -> Attribute {
        use Attribute::Value;
        match kind {
            CKA_ID => Value(self.id.clone()),
            CKA_START_DATE | CKA_END_DATE => Value(Vec::new()),
            CKA_LOCAL => Value(flag(self.local)),
            CKA_KEY_GEN_MECHANISM if self.local => Value(number(CKM_EC_KEY_PAIR_GEN)),
            CKA_KEY_GEN_MECHANISM => Value(number(CK_UNAVAILABLE_INFORMATION)),
            _ => Attribute::Absent,
        }
    }

    /// Section 4.9 and, for curves, mechanisms section 2.3.4.
    fn of_private_key(&self, key: &PrivateKey, kind: CK_ATTRIBUTE_TYPE) -> Attribute {
        use Attribute::Value;
        match kind {
            CKA_KEY_TYPE => Value(number(CKK_EC)),
            CKA_EC_PARAMS => Value(der::ec_params(key.curve).to_vec()),
            CKA_VALUE => Attribute::Sensitive,
            CKA_SUBJECT => Value(self.subject.clone()),
            CKA_SIGN => Value(flag(key.sign)),
            CKA_DERIVE => Value(flag(key.derive)),
            CKA_SENSITIVE => Value(flag(true)),
            // What a card was given at its making is not known.
            CKA_ALWAYS_SENSITIVE | CKA_NEVER_EXTRACTABLE => Value(flag(self.local)),
            CKA_DECRYPT
            | CKA_SIGN_RECOVER
            | CKA_UNWRAP
            | CKA_EXTRACTABLE
            | CKA_WRAP_WITH_TRUSTED
            | CKA_ALWAYS_AUTHENTICATE => Value(flag(false)),
            CKA_ALLOWED_MECHANISMS => {
                let mechanisms = mechanism::of_private_key(key);
                Value(mechanisms.into_iter().flat_map(number).collect())
            }
            _ => self.of_any_key(kind),
        }
    }

    /// Section 4.8 and mechanisms section 2.3.3.
    fn of_public_key(&self, key: &PublicKey, kind: CK_ATTRIBUTE_TYPE) -> Attribute {
        use Attribute::Value;
        let point = key.point.get();
        match kind {
            CKA_KEY_TYPE => Value(number(CKK_EC)),
            CKA_EC_PARAMS => Value(der::ec_params(key.curve).to_vec()),
            CKA_EC_POINT => Value(point.map(der::ec_point).unwrap_or_default()),
            CKA_PUBLIC_KEY_INFO => {
                Value(point.map(|point| der::public_key_info(key.curve, point)).unwrap_or_default())
            }
            CKA_SUBJECT => Value(self.subject.clone()),
            CKA_VERIFY => Value(flag(key.verify)),
            CKA_DERIVE | CKA_ENCRYPT | CKA_VERIFY_RECOVER | CKA_WRAP | CKA_TRUSTED => {
                Value(flag(false))
            }
            _ => self.of_any_key(kind),
        }
    }

    /// Section 4.6.3.
    fn of_certificate(&self, certificate: &Certificate, kind: CK_ATTRIBUTE_TYPE) -> Attribute {
        use Attribute::Value;
        Value(match kind {
            CKA_CERTIFICATE_TYPE => number(CKC_X_509),
            CKA_VALUE => certificate.value.clone(),
            CKA_SUBJECT => certificate.subject.clone(),
            CKA_ISSUER => certificate.issuer.clone(),
            CKA_SERIAL_NUMBER => certificate.serial_number.clone(),
            CKA_ID => self.id.clone(),
            CKA_PUBLIC_KEY_INFO => certificate.public_key_info.clone(),
            CKA_TRUSTED => flag(false),
            CKA_CERTIFICATE_CATEGORY if certificate.authority => {
                number(CK_CERTIFICATE_CATEGORY_AUTHORITY)
            }
            CKA_CERTIFICATE_CATEGORY => number(CK_CERTIFICATE_CATEGORY_UNSPECIFIED),
            CKA_START_DATE => certificate.validity[0].clone().into_bytes(),
            CKA_END_DATE => certificate.validity[1].clone().into_bytes(),
            CKA_URL | CKA_HASH_OF_SUBJECT_PUBLIC_KEY | CKA_HASH_OF_ISSUER_PUBLIC_KEY => Vec::new(),
            CKA_JAVA_MIDP_SECURITY_DOMAIN => number(CK_SECURITY_DOMAIN_UNSPECIFIED),
            _ => return Attribute::Absent,
        })
    }

    /// Section 4.10.
    fn of_secret(&self, secret: &Secret, kind: CK_ATTRIBUTE_TYPE) -> Attribute {
        use Attribute::Value;
        let value = secret.value.expose();
        match kind {
            CKA_KEY_TYPE => Value(number(secret.key_type)),
            CKA_VALUE if secret.sensitive || !secret.extractable => Attribute::Sensitive,
            CKA_VALUE => Value(value.to_vec()),
            CKA_VALUE_LEN => Value(number(value.len() as CK_ULONG)),
            CKA_SENSITIVE => Value(flag(secret.sensitive)),
            CKA_EXTRACTABLE => Value(flag(secret.extractable)),
            // The card gave it out, so it was seen outside.
            CKA_ALWAYS_SENSITIVE
            | CKA_NEVER_EXTRACTABLE
            | CKA_ENCRYPT
            | CKA_DECRYPT
            | CKA_SIGN
            | CKA_VERIFY
            | CKA_WRAP
            | CKA_UNWRAP
            | CKA_DERIVE
            | CKA_TRUSTED
            | CKA_WRAP_WITH_TRUSTED => Value(flag(false)),
            _ => self.of_any_key(kind),
        }
    }
}

/// Section 4.5.
fn of_data(content: &[u8], kind: CK_ATTRIBUTE_TYPE) -> Attribute {
    match kind {
        CKA_VALUE => Attribute::Value(content.to_vec()),
        CKA_APPLICATION | CKA_OBJECT_ID => Attribute::Value(Vec::new()),
        _ => Attribute::Absent,
    }
}
