// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which token and which key are meant.

use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::error::CallerError;
use crate::module::{Module, TokenInfo};

/// secp256r1 as CKA_EC_PARAMS names it: the OID 1.2.840.10045.3.1.7, DER (RFC 5480 section
/// 2.1.1.1).
const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

/// Curves by their OIDs, DER (RFC 5480 section 2.1.1.1, RFC 5639 section 4.1).
const CURVES: [(&[u8], &str); 4] = [
    (&P256, "P-256"),
    (&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22], "P-384"),
    (&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23], "P-521"),
    (&[0x06, 0x09, 0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x07], "brainpoolP256r1"),
];

/// What is looked for.
#[derive(Clone, Default)]
pub struct Wanted {
    /// The token's label; any, if there is one alone.
    pub token: Option<String>,
    /// The key's label; any on P-256, if there is one alone.
    pub key: Option<String>,
    /// The user's PIN.
    pub pin: Option<Zeroizing<String>>,
}

/// The token that was found.
#[derive(Clone, Debug)]
pub struct TokenFound {
    /// Its slot.
    pub id: CK_SLOT_ID,
    /// What it says of itself.
    pub info: TokenInfo,
}

/// The key that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFound {
    /// CKA_LABEL.
    pub label: String,
    /// CKA_ID.
    pub id: Vec<u8>,
    /// Its public point, uncompressed, if the token shows it.
    pub point: Option<Vec<u8>>,
}

impl Wanted {
    /// The token.
    ///
    /// # Errors
    /// There is none, or none of this label, or several.
    pub(crate) fn token(&self, module: &Module) -> Result<TokenFound, CallerError> {
        let mut found = Vec::new();
        for id in module.slots()? {
            // A token that went away meanwhile is none; SoftHSM2 shows an empty one as well.
            if let Ok(info) = module.token(id)
                && info.initialised
            {
                found.push(TokenFound { id, info });
            }
        }
        if found.is_empty() {
            return Err(CallerError::NoToken);
        }
        let labels = found.iter().map(|one| one.info.label.as_str()).collect::<Vec<_>>().join(", ");
        let fits =
            |one: &TokenFound| self.token.as_ref().is_none_or(|label| *label == one.info.label);
        found.retain(fits);
        match (found.pop(), found.is_empty(), &self.token) {
            (Some(one), true, _) => Ok(one),
            (None, _, wanted) => {
                let which =
                    format!("no token has the label {}", wanted.as_deref().unwrap_or_default());
                Err(CallerError::WhichToken { which, labels })
            }
            (Some(_), false, None) => {
                Err(CallerError::WhichToken { which: "there are several tokens".into(), labels })
            }
            (Some(_), false, Some(label)) => {
                let which = format!("several tokens have the label {label}");
                Err(CallerError::WhichToken { which, labels })
            }
        }
    }

    /// The key, in a session that is logged in.
    ///
    /// # Errors
    /// There is none, or several.
    pub(crate) fn key(
        &self,
        module: &Module,
        token: &str,
        session: CK_SESSION_HANDLE,
    ) -> Result<KeyFound, CallerError> {
        let mut keys = Vec::new();
        let mut others = Vec::new();
        for object in module.find(session, &mut class(CKO_PRIVATE_KEY))? {
            let get = |kind| module.attribute(session, object, kind).unwrap_or_default();
            let label = String::from_utf8_lossy(&get(CKA_LABEL)).into_owned();
            let params = get(CKA_EC_PARAMS);
            // A card has keys that only agree on secrets. Who does not say so may be able to sign.
            let signs = get(CKA_SIGN) != [CK_FALSE];
            let fits = params == P256 && signs;
            if fits && self.key.as_ref().is_none_or(|wanted| *wanted == label) {
                keys.push(KeyFound { label, id: get(CKA_ID), point: None });
            } else {
                let cannot = if signs { "" } else { ", cannot sign" };
                others.push(format!("{label} ({}{cannot})", kind(&get(CKA_KEY_TYPE), &params)));
            }
        }
        let token = token.to_owned();
        match (keys.pop(), &keys[..]) {
            (Some(mut key), []) => {
                key.point = point(module, session, &key.id);
                Ok(key)
            }
            (None, _) => {
                let asked = self.key.as_ref().map(|label| format!(" with label {label}"));
                let found = match others.is_empty() {
                    true => "it shows none to this user".to_owned(),
                    false => format!("it has {}", others.join(", ")),
                };
                Err(CallerError::NoKey { token, asked: asked.unwrap_or_default(), found })
            }
            (Some(last), rest) => {
                let labels = rest.iter().chain([&last]).map(|key| key.label.as_str());
                let found = labels.collect::<Vec<_>>().join(", ");
                Err(CallerError::WhichKey { token, found })
            }
        }
    }
}

impl KeyFound {
    /// What a program that knows its key looks for.
    pub(crate) fn template(&self) -> Vec<(CK_ATTRIBUTE_TYPE, Vec<u8>)> {
        let mut template = class(CKO_PRIVATE_KEY).to_vec();
        if !self.label.is_empty() {
            template.push((CKA_LABEL, self.label.clone().into_bytes()));
        }
        if !self.id.is_empty() {
            template.push((CKA_ID, self.id.clone()));
        }
        template
    }
}

/// What a key is, for people: CKA_KEY_TYPE and, of a curve, CKA_EC_PARAMS.
fn kind(key_type: &[u8], params: &[u8]) -> &'static str {
    let known = CK_KEY_TYPE::from_ne_bytes(key_type.try_into().unwrap_or_default());
    if known == CKK_RSA && key_type.len() == size_of::<CK_KEY_TYPE>() {
        return "RSA";
    }
    CURVES.iter().find(|(oid, _)| *oid == params).map_or("another type", |(_, name)| name)
}

fn class(class: CK_OBJECT_CLASS) -> [(CK_ATTRIBUTE_TYPE, Vec<u8>); 1] {
    [(CKA_CLASS, class.to_ne_bytes().to_vec())]
}

/// The point of the public key beside a private one.
fn point(module: &Module, session: CK_SESSION_HANDLE, id: &[u8]) -> Option<Vec<u8>> {
    let mut template = class(CKO_PUBLIC_KEY).to_vec();
    template.push((CKA_ID, id.to_vec()));
    let found = module.find(session, &mut template).ok()?;
    let value = module.attribute(session, *found.first()?, CKA_EC_POINT)?;
    // An OCTET STRING around it (PKCS#11 2.40 section 2.3.3); some tokens leave that out.
    match value[..] {
        [0x04, 65, 0x04, ..] if value.len() == 67 => Some(value[2..].to_vec()),
        [0x04, ..] if value.len() == 65 => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_kinds_of_keys() {
        let (rsa, ec) = (CKK_RSA.to_ne_bytes(), CKK_EC.to_ne_bytes());
        assert_eq!(kind(&rsa, &[]), "RSA");
        assert_eq!(kind(&ec, &P256), "P-256");
        assert_eq!(kind(&ec, CURVES[1].0), "P-384");
        // A token that tells neither.
        assert_eq!(kind(&[], &[]), "another type");
    }
}
