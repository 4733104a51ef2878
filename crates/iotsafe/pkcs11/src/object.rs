// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects and their attributes (PKCS#11 2.40 section 4).

use std::sync::OnceLock;

use cryptoki_sys::*;
use warifu_card::crypto::SecretBytes;
use warifu_iotsafe_client::{Curve, Hash};

use crate::certificate::Certificate;
use crate::der;
use crate::template::{Template, flag, number};

/// An object that callers have a handle to.
#[derive(Debug)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// CKA_LABEL.
    pub label: Vec<u8>,
    /// CKA_ID: the same for a key pair and its certificate.
    pub id: Vec<u8>,
    /// CKA_PRIVATE: visible only after login.
    pub private: bool,
    /// Its session; None for an object of the token.
    pub session: Option<CK_SESSION_HANDLE>,
    /// Whether this module had the card generate it.
    pub local: bool,
    /// CKA_SUBJECT of a key: that of its certificate, if one is known.
    pub subject: Vec<u8>,
}

/// The kinds of objects.
#[derive(Debug)]
pub enum Kind {
    /// CKO_PRIVATE_KEY.
    PrivateKey(PrivateKey),
    /// CKO_PUBLIC_KEY.
    PublicKey(PublicKey),
    /// CKO_CERTIFICATE.
    Certificate(Certificate),
    /// CKO_DATA: a file that is not a certificate.
    Data(Vec<u8>),
    /// CKO_SECRET_KEY: a derived key.
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
    /// The card's id of the public key, if it can be read.
    pub public_id: Option<Vec<u8>>,
    /// Whether the card may replace it by generating another.
    pub replaceable: bool,
}

/// A public key, of the card or of a session.
#[derive(Debug)]
pub struct PublicKey {
    /// The card's id of it; None for a session object.
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

/// The result of C_GetAttributeValue for one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// Its value.
    Value(Vec<u8>),
    /// It has a value that must not be revealed.
    Sensitive,
    /// The object has no such attribute.
    Absent,
}

impl PrivateKey {
    /// CKA_ALLOWED_MECHANISMS.
    #[must_use]
    pub fn mechanisms(&self) -> Vec<CK_MECHANISM_TYPE> {
        let mut mechanisms = Vec::new();
        if self.sign {
            mechanisms.push(CKM_ECDSA);
            let hashing = [CKM_ECDSA_SHA1, CKM_ECDSA_SHA256, CKM_ECDSA_SHA384, CKM_ECDSA_SHA512];
            mechanisms.extend(hashing);
        }
        if self.derive {
            mechanisms.push(CKM_ECDH1_DERIVE);
        }
        mechanisms
    }
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

    /// Whether it has all attributes of a template with the same values.
    #[must_use]
    pub fn matches(&self, template: &Template) -> bool {
        template.iter().all(|(kind, value)| match self.attribute(kind) {
            Attribute::Value(own) => own == value,
            Attribute::Sensitive | Attribute::Absent => false,
        })
    }

    /// An attribute. The point of a public key must have been read before.
    #[must_use]
    pub fn attribute(&self, kind: CK_ATTRIBUTE_TYPE) -> Attribute {
        use Attribute::Value;
        match kind {
            CKA_CLASS => Value(number(self.class())),
            CKA_TOKEN => Value(flag(self.session.is_none())),
            CKA_PRIVATE => Value(flag(self.private)),
            CKA_LABEL => Value(self.label.clone()),
            // The card has no command to modify or copy an object.
            CKA_MODIFIABLE | CKA_COPYABLE => Value(flag(false)),
            CKA_DESTROYABLE => Value(flag(self.is_destroyable())),
            _ => match &self.kind {
                Kind::PrivateKey(key) => self.private_key_attribute(key, kind),
                Kind::PublicKey(key) => self.public_key_attribute(key, kind),
                Kind::Certificate(certificate) => self.certificate_attribute(certificate, kind),
                Kind::Data(content) => data_attribute(content, kind),
                Kind::Secret(secret) => self.secret_attribute(secret, kind),
            },
        }
    }

    fn is_destroyable(&self) -> bool {
        let replaceable = matches!(&self.kind, Kind::PrivateKey(key) if key.replaceable);
        self.session.is_some() || replaceable
    }

    /// Attributes of all keys (section 4.7).
    fn key_attribute(&self, kind: CK_ATTRIBUTE_TYPE) -> Attribute {
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
    fn private_key_attribute(&self, key: &PrivateKey, kind: CK_ATTRIBUTE_TYPE) -> Attribute {
        use Attribute::Value;
        match kind {
            CKA_KEY_TYPE => Value(number(CKK_EC)),
            CKA_EC_PARAMS => Value(der::ec_params(key.curve).to_vec()),
            CKA_VALUE => Attribute::Sensitive,
            CKA_SUBJECT => Value(self.subject.clone()),
            CKA_SIGN => Value(flag(key.sign)),
            CKA_DERIVE => Value(flag(key.derive)),
            CKA_SENSITIVE => Value(flag(true)),
            // How other keys came into the card is unknown.
            CKA_ALWAYS_SENSITIVE | CKA_NEVER_EXTRACTABLE => Value(flag(self.local)),
            CKA_DECRYPT
            | CKA_SIGN_RECOVER
            | CKA_UNWRAP
            | CKA_EXTRACTABLE
            | CKA_WRAP_WITH_TRUSTED
            | CKA_ALWAYS_AUTHENTICATE => Value(flag(false)),
            CKA_ALLOWED_MECHANISMS => {
                let mechanisms = key.mechanisms();
                Value(mechanisms.into_iter().flat_map(number).collect())
            }
            _ => self.key_attribute(kind),
        }
    }

    /// Section 4.8 and mechanisms section 2.3.3.
    fn public_key_attribute(&self, key: &PublicKey, kind: CK_ATTRIBUTE_TYPE) -> Attribute {
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
            _ => self.key_attribute(kind),
        }
    }

    /// Section 4.6.3.
    fn certificate_attribute(
        &self,
        certificate: &Certificate,
        kind: CK_ATTRIBUTE_TYPE,
    ) -> Attribute {
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
    fn secret_attribute(&self, secret: &Secret, kind: CK_ATTRIBUTE_TYPE) -> Attribute {
        use Attribute::Value;
        let value = secret.value.expose();
        match kind {
            CKA_KEY_TYPE => Value(number(secret.key_type)),
            CKA_VALUE if secret.sensitive || !secret.extractable => Attribute::Sensitive,
            CKA_VALUE => Value(value.to_vec()),
            CKA_VALUE_LEN => Value(number(value.len() as CK_ULONG)),
            CKA_SENSITIVE => Value(flag(secret.sensitive)),
            CKA_EXTRACTABLE => Value(flag(secret.extractable)),
            // The card has returned it, so it was outside.
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
            _ => self.key_attribute(kind),
        }
    }
}

/// Section 4.5.
fn data_attribute(content: &[u8], kind: CK_ATTRIBUTE_TYPE) -> Attribute {
    match kind {
        CKA_VALUE => Attribute::Value(content.to_vec()),
        CKA_APPLICATION | CKA_OBJECT_ID => Attribute::Value(Vec::new()),
        _ => Attribute::Absent,
    }
}
