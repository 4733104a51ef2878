// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is asked of a card's maker, as the program reads it from stdin.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use warifu_card::identity::CARD_LABEL;
use zeroize::Zeroizing;

/// What a new card is to be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// Its state file, which must not be there.
    pub state: PathBuf,
    /// Its name as a token.
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
    /// How many empty places for further key pairs it has, at ids from 10 on.
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
    /// What needs it.
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
    /// Nothing, although it can be verified.
    Nothing,
    /// Signatures.
    #[default]
    Signing,
    /// Every use of a private key or secret.
    EveryKey,
}

/// What is to be stored on a card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// The card's state file.
    pub state: PathBuf,
    /// The client's certificate, for slot 02. It must be of the client key.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// The server's or its authority's certificate, for slot 03.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// A private key from outside, for slot 01: for development alone.
    #[serde(default)]
    pub key: Option<PathBuf>,
}

/// Which card to look at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The card's state file.
    pub state: PathBuf,
}

/// What is to be set back.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetRequest {
    /// The card's state file.
    pub state: PathBuf,
    /// Give the PIN all its tries again.
    #[serde(default)]
    pub unblock_pin: bool,
    /// Replace the PIN.
    #[serde(default)]
    pub pin: Option<PinRequest>,
    /// Take the PIN away.
    #[serde(default)]
    pub remove_pin: bool,
    /// Make the card as new: a new client key, no certificates; quirks and PIN stay.
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
