// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the card has said and what does not change: served to callers without a turn at the card.

use std::collections::BTreeMap;

use warifu_token::{Curve, File, Hash, Inventory, SignInput, TokenError, TokenInfo};

/// The most bytes of files that are kept, over all files.
const FILES_MAX_BYTES: usize = 1 << 20;

/// What is known of a card.
#[derive(Default)]
pub struct Known {
    /// What it says of itself.
    pub info: Option<TokenInfo>,
    /// Its objects.
    pub inventory: Option<Inventory>,
    points: BTreeMap<Vec<u8>, [u8; 65]>,
    files: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Known {
    /// A public key, if it was read.
    #[must_use]
    pub fn point(&self, public_id: &[u8]) -> Option<[u8; 65]> {
        self.points.get(public_id).copied()
    }

    /// Keeps a public key; not one of a volatile pair, which the next session has not.
    pub fn keep_point(&mut self, public_id: &[u8], point: [u8; 65]) {
        if !self.is_volatile(public_id) {
            self.points.insert(public_id.to_vec(), point);
        }
    }

    /// A file's content, if it was read.
    #[must_use]
    pub fn file(&self, file: &File) -> Option<&[u8]> {
        self.files.get(&file.id).map(Vec::as_slice)
    }

    /// Keeps a file's content.
    pub fn keep_file(&mut self, file: &File, content: &[u8]) {
        let held: usize = self.files.values().map(Vec::len).sum();
        if held + content.len() <= FILES_MAX_BYTES {
            self.files.insert(file.id.clone(), content.to_vec());
        }
    }

    /// A key pair was made anew.
    pub fn forget_pair(&mut self, public_id: Option<&[u8]>) {
        self.inventory = None;
        match public_id {
            Some(id) => drop(self.points.remove(id)),
            None => self.points.clear(),
        }
    }

    fn is_volatile(&self, public_id: &[u8]) -> bool {
        let keys = self.inventory.iter().flat_map(|inventory| &inventory.public_keys);
        keys.filter(|key| key.id == public_id).any(|key| key.attributes.is_volatile())
    }
}

/// The point of a curve, or the error of an answer that was damaged on its way.
pub(super) fn on_curve(curve: Option<Curve>, point: [u8; 65]) -> Result<[u8; 65], TokenError> {
    let curves = curve.map_or_else(|| Curve::ALL.to_vec(), |curve| vec![curve]);
    match curves.iter().any(|curve| curve.point(&point).is_some()) {
        true => Ok(point),
        false => Err(TokenError::Answer {
            command: "READ PUBLIC KEY".into(),
            what: "is no point of its curve".into(),
        }),
    }
}

/// Lets only a signature pass that the public key verifies: a card or a line may err.
pub(super) fn checked(
    curve: Curve,
    point: &[u8; 65],
    input: SignInput<'_>,
    signature: [u8; 64],
) -> Result<[u8; 64], TokenError> {
    let digest = match input {
        SignInput::Digest(_, digest) => digest.to_vec(),
        SignInput::Text(hash, text) => Hash::digest(hash, text),
    };
    match curve.point(point).is_some_and(|point| point.verify(&digest, &signature)) {
        true => Ok(signature),
        false => Err(TokenError::Answer {
            command: "COMPUTE SIGNATURE".into(),
            what: "does not verify with the key's public half".into(),
        }),
    }
}
