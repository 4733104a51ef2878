// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The requests for personalisation, as the program reads them from stdin.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use warifu_card::identity::CARD_LABEL;
use zeroize::Zeroizing;

/// A request to create a card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// Its state file, which must not exist.
    pub state: PathBuf,
    /// Its label as a token.
    #[serde(default = "usual_label")]
    pub label: String,
    /// Name of its quirk profile.
    #[serde(default = "strict")]
    pub quirks: String,
    /// Curve of its client key.
    #[serde(default)]
    pub curve: CurveName,
    /// Its PIN; none by default.
    #[serde(default)]
    pub pin: Option<PinRequest>,
    /// The number of spare containers for key pairs, with ids from 10 on.
    #[serde(default)]
    pub spare_pairs: u8,
}

/// A curve by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum CurveName {
    /// NIST P-256.
    #[default]
    #[serde(rename = "secp256r1", alias = "P-256")]
    Secp256r1,
    /// RFC 5639.
    #[serde(rename = "brainpoolP256r1")]
    BrainpoolP256r1,
}

/// A PIN and its policy.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinRequest {
    /// 4 to 8 digits.
    pub digits: Zeroizing<String>,
    /// What it protects.
    #[serde(default)]
    pub scope: ScopeName,
    /// How many wrong tries lock it.
    #[serde(default = "three")]
    pub tries: u8,
}

/// What a PIN protects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeName {
    /// Nothing, but it can be verified.
    Nothing,
    /// Signatures.
    #[default]
    Signing,
    /// Every use of a private key or secret.
    EveryKey,
}

/// A request to store certificates or a key on a card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// The card's state file.
    pub state: PathBuf,
    /// The certificate of the client key, for container 02.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// The certificate of the server or its CA, for container 03.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// A private key for container 01, for development only.
    #[serde(default)]
    pub key: Option<PathBuf>,
}

/// A request to list a card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The card's state file.
    pub state: PathBuf,
}

/// A request to reset a card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetRequest {
    /// The card's state file.
    pub state: PathBuf,
    /// Unlock the PIN.
    #[serde(default)]
    pub unblock_pin: bool,
    /// Replace the PIN.
    #[serde(default)]
    pub pin: Option<PinRequest>,
    /// Remove the PIN.
    #[serde(default)]
    pub remove_pin: bool,
    /// Erase the card: a new client key, no certificates; quirks and PIN are kept.
    #[serde(default)]
    pub erase: bool,
}

fn usual_label() -> String {
    CARD_LABEL.to_owned()
}

fn strict() -> String {
    "strict".to_owned()
}

fn three() -> u8 {
    3
}

impl std::fmt::Debug for PinRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PinRequest({:?}, {} tries)", self.scope, self.tries)
    }
}
