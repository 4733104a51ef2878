// SPDX-License-Identifier: Apache-2.0 OR MIT
//! COMPUTE PRF and HKDF EXTRACT.

use super::{Answer, Card, Handled, Request, optional_selector};
use crate::apdu::StatusWord;
use crate::crypto::{
    Hash, SecretBytes, hkdf_extract, premaster_psk, premaster_psk_ecdhe, prf_tls12,
};
use crate::object::Selector;
use crate::pin::PinScope;
use crate::tlv::{Fields, tag};

/// The most bytes that COMPUTE PRF gives: what a short answer holds.
const PRF_MAX_BYTES: usize = 256;

impl Card {
    /// COMPUTE PRF: D2 with label and seed, D3 with the length (1 or 2 bytes), 91 for a hash
    /// other than SHA-256, and the secret. P1 says which: 00 as it is (D1, or one stored: 86 or
    /// 76), 01 a stored pre-shared key (RFC 4279), 02 that and D4 from ECDHE (RFC 5489).
    pub(super) fn compute_prf(&self, request: &Request<'_>) -> Handled {
        if request.p1 > 2 || request.p2 != 0 {
            return Err(StatusWord::INCORRECT_P1_P2);
        }
        let tags = [
            tag::SECRET_ID,
            tag::SECRET_LABEL,
            tag::SECRET_VALUE,
            tag::PREMASTER,
            tag::LABEL_AND_SEED,
            tag::OUTPUT_LENGTH,
            tag::HASH,
        ];
        let fields = self.fields(request.data, &tags)?;
        let length = match *fields.need(tag::OUTPUT_LENGTH)? {
            [length] => usize::from(length),
            [high, low] => usize::from(u16::from_be_bytes([high, low])),
            _ => return Err(StatusWord::INCORRECT_DATA),
        };
        if !(1..=PRF_MAX_BYTES).contains(&length) {
            return Err(StatusWord::INCORRECT_DATA);
        }
        let hash = match fields.get(tag::HASH)? {
            Some(name) => Hash::from_bytes(name).ok_or(StatusWord::INCORRECT_DATA)?,
            None => Hash::Sha256,
        };
        let seed = fields.need(tag::LABEL_AND_SEED)?;
        let secret = self.prf_secret(request.p1, &fields)?;
        let out = prf_tls12(hash, secret.expose(), seed, length);
        Ok(Answer::of(out.expose().to_vec()))
    }

    fn prf_secret(&self, mode: u8, fields: &Fields<'_>) -> Result<SecretBytes, StatusWord> {
        let stored = optional_selector(fields, tag::SECRET_ID, tag::SECRET_LABEL)?;
        let given = fields.get(tag::SECRET_VALUE)?;
        let premaster = fields.get(tag::PREMASTER)?;
        match (mode, stored, given, premaster) {
            (0, None, Some(given), None) => Ok(SecretBytes::new(given.to_vec())),
            (0, Some(stored), None, None) => self.stored_secret(stored),
            (1, Some(stored), None, None) => {
                Ok(premaster_psk(self.stored_secret(stored)?.expose()))
            }
            (2, Some(stored), None, Some(shared)) => {
                Ok(premaster_psk_ecdhe(shared, self.stored_secret(stored)?.expose()))
            }
            _ => Err(StatusWord::INCORRECT_DATA),
        }
    }

    fn stored_secret(&self, wanted: Selector<'_>) -> Result<SecretBytes, StatusWord> {
        let at = self.find(&self.store.secrets, wanted)?;
        self.need_pin(PinScope::EveryKey)?;
        Ok(self.store.secrets[at].value.clone())
    }

    /// HKDF EXTRACT: D1 with the keying material, D5 with the salt if there is one, 91 -> PRK.
    pub(super) fn hkdf_extract(&self, request: &Request<'_>) -> Handled {
        request.no_parameters()?;
        let fields = self.fields(request.data, &[tag::SECRET_VALUE, tag::SALT, tag::HASH])?;
        let hash = Hash::from_bytes(fields.need(tag::HASH)?).ok_or(StatusWord::INCORRECT_DATA)?;
        let salt = fields.get(tag::SALT)?.unwrap_or_default();
        let prk = hkdf_extract(hash, salt, fields.need(tag::SECRET_VALUE)?);
        Ok(Answer::of(prk.expose().to_vec()))
    }
}
