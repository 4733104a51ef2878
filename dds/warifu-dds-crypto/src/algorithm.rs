// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The AEADs, and how a crypto header names them (DDS Security 1.1, section 9.5.2.1.1).

/// An authenticated cipher that protects one entity's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aead {
    /// AES-GCM with a key of 128 bit; standard.
    Aes128Gcm,
    /// AES-GCM with a key of 256 bit; standard, and the default.
    Aes256Gcm,
    /// AEGIS-128L with a tag of 128 bit (draft-irtf-cfrg-aegis-aead); an experiment.
    Aegis128L,
    /// AEGIS-256 with a tag of 128 bit (draft-irtf-cfrg-aegis-aead); an experiment.
    Aegis256,
    /// Ascon-AEAD128 (NIST SP 800-232); an experiment.
    AsconAead128,
    /// Deoxys-II-128-128 (CAESAR, version 1.43); an experiment.
    DeoxysII128,
    /// ChaCha20-Poly1305 (RFC 8439); an experiment.
    ChaCha20Poly1305,
}

/// Whether a message is encrypted or only authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A tag over the plain message: GMAC, and for other AEADs a tag over associated data alone.
    Sign,
    /// Encrypted and authenticated.
    Encrypt,
}

/// What a crypto header calls `transformation_kind`, other than NONE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The cipher.
    pub aead: Aead,
    /// What it does.
    pub mode: Mode,
}

/// `CRYPTO_TRANSFORMATION_KIND_NONE`.
pub const NONE: [u8; 4] = [0; 4];

/// Every tag here.
pub const TAG_BYTES: usize = 16;

/// The longest nonce, AEGIS-256's.
pub const MAX_NONCE_BYTES: usize = 32;

/// The longest key.
pub const MAX_KEY_BYTES: usize = 32;

/// The first two octets of kinds that are not standard are those of an RTPS vendor (DDS Security
/// 1.1, section 8.5.1.1). Warifu has none: these stand for an experiment, "wa".
const EXPERIMENT: [u8; 2] = [0x77, 0x61];

impl Aead {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Aes128Gcm,
        Self::Aes256Gcm,
        Self::Aegis128L,
        Self::Aegis256,
        Self::AsconAead128,
        Self::DeoxysII128,
        Self::ChaCha20Poly1305,
    ];

    /// The name by which a user selects it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "AES-128-GCM",
            Self::Aes256Gcm => "AES-256-GCM",
            Self::Aegis128L => "AEGIS-128L",
            Self::Aegis256 => "AEGIS-256",
            Self::AsconAead128 => "Ascon-AEAD128",
            Self::DeoxysII128 => "Deoxys-II-128-128",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        }
    }

    /// The one of that name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|aead| aead.name().eq_ignore_ascii_case(name))
    }

    /// Bytes of a key, and of a master salt.
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm | Self::Aegis128L | Self::AsconAead128 | Self::DeoxysII128 => 16,
            Self::Aes256Gcm | Self::Aegis256 | Self::ChaCha20Poly1305 => 32,
        }
    }

    /// Bytes of a nonce: 4 of the session's id, the rest a counter.
    pub const fn nonce_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm | Self::ChaCha20Poly1305 => 12,
            Self::DeoxysII128 => 15,
            Self::Aegis128L | Self::AsconAead128 => 16,
            Self::Aegis256 => 32,
        }
    }

    /// Whether it is one of DDS Security's own.
    pub const fn is_standard(self) -> bool {
        matches!(self, Self::Aes128Gcm | Self::Aes256Gcm)
    }

    /// The class id of its crypto tokens (DDS Security 1.1, table 66). Peers that protect their
    /// messages otherwise find that out here, when keys are exchanged.
    pub const fn class_id(self) -> &'static str {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => "DDS:Crypto:AES_GCM_GMAC",
            Self::Aegis128L => "Warifu:Crypto:AEGIS-128L",
            Self::Aegis256 => "Warifu:Crypto:AEGIS-256",
            Self::AsconAead128 => "Warifu:Crypto:Ascon-AEAD128",
            Self::DeoxysII128 => "Warifu:Crypto:Deoxys-II-128-128",
            Self::ChaCha20Poly1305 => "Warifu:Crypto:ChaCha20-Poly1305",
        }
    }

    /// What the derivation of session keys begins with, so that one master key never keys two
    /// ciphers; the standard's own has nothing there.
    pub const fn derivation_label(self) -> &'static str {
        if self.is_standard() { "" } else { self.class_id() }
    }

    const fn experiment(self) -> Option<u8> {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => None,
            Self::Aegis128L => Some(1),
            Self::Aegis256 => Some(2),
            Self::AsconAead128 => Some(3),
            Self::DeoxysII128 => Some(4),
            Self::ChaCha20Poly1305 => Some(5),
        }
    }
}

impl Kind {
    /// As it is sent.
    pub fn to_wire(self) -> [u8; 4] {
        let encrypts = u8::from(self.mode == Mode::Encrypt);
        match (self.aead, self.aead.experiment()) {
            // DDS Security 1.1, section 9.5.2.1.1: GMAC is 1 and 3, GCM 2 and 4.
            (Aead::Aes128Gcm, _) => [0, 0, 0, 1 + encrypts],
            (_, None) => [0, 0, 0, 3 + encrypts],
            (_, Some(number)) => [EXPERIMENT[0], EXPERIMENT[1], number, encrypts],
        }
    }

    /// Nothing for NONE and for what nobody here knows.
    pub fn from_wire(wire: [u8; 4]) -> Option<Self> {
        Aead::ALL
            .into_iter()
            .flat_map(|aead| [Mode::Sign, Mode::Encrypt].map(|mode| Self { aead, mode }))
            .find(|kind| kind.to_wire() == wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_kinds_have_the_numbers_of_the_standard() {
        let kind = |aead, mode| Kind { aead, mode }.to_wire();
        assert_eq!(kind(Aead::Aes128Gcm, Mode::Sign), [0, 0, 0, 1]);
        assert_eq!(kind(Aead::Aes128Gcm, Mode::Encrypt), [0, 0, 0, 2]);
        assert_eq!(kind(Aead::Aes256Gcm, Mode::Sign), [0, 0, 0, 3]);
        assert_eq!(kind(Aead::Aes256Gcm, Mode::Encrypt), [0, 0, 0, 4]);
    }

    #[test]
    fn every_kind_is_read_as_it_is_written_and_no_two_are_alike() {
        let mut seen = std::collections::HashSet::new();
        for aead in Aead::ALL {
            for mode in [Mode::Sign, Mode::Encrypt] {
                let kind = Kind { aead, mode };
                assert_eq!(Kind::from_wire(kind.to_wire()), Some(kind));
                assert!(seen.insert(kind.to_wire()));
            }
        }
        assert_eq!(Kind::from_wire(NONE), None);
        assert_eq!(Kind::from_wire([0, 0, 0, 5]), None);
    }

    #[test]
    fn only_standard_ciphers_use_the_standard_class_and_derivation() {
        for aead in Aead::ALL {
            assert_eq!(aead.is_standard(), aead.class_id() == "DDS:Crypto:AES_GCM_GMAC");
            assert_eq!(aead.is_standard(), aead.derivation_label().is_empty());
        }
    }
}
