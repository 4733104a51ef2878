// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a user chooses: by properties of a participant or endpoint, by the environment where a
//! program cannot be changed, or by the init function that the configuration names.

use crate::algorithm::Aead;
use crate::error::{Error, Result};

/// Of a participant; endpoints may choose another AEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The cipher.
    pub aead: Aead,
    /// After how many blocks of 16 B a session key is replaced.
    pub max_blocks: u64,
}

/// Property of participants and endpoints: an AEAD's name.
pub const AEAD_PROPERTY: &str = "warifu.dds.aead";

/// Property of participants: blocks per session.
pub const MAX_BLOCKS_PROPERTY: &str = "warifu.dds.max_blocks_per_session";

/// Cyclone's property for AES keys of 128 bit (dds_security_api_defs.h).
pub const KEY_SIZE_PROPERTY: &str = "dds.sec.crypto.keysize";

/// Environment variable: an AEAD's name.
pub const AEAD_VARIABLE: &str = "WARIFU_DDS_AEAD";

/// Environment variable: blocks per session.
pub const MAX_BLOCKS_VARIABLE: &str = "WARIFU_DDS_MAX_BLOCKS_PER_SESSION";

/// 2^32 blocks, 64 GiB: below the 2^36 that one message may have, and where an attacker who sees
/// them all gains nothing (NIST SP 800-38D, section 8.3 and appendix B).
const DEFAULT_MAX_BLOCKS: u64 = 1 << 32;

impl Default for Settings {
    fn default() -> Self {
        Self { aead: Aead::Aes256Gcm, max_blocks: DEFAULT_MAX_BLOCKS }
    }
}

impl Settings {
    /// With what properties or variables say, by their names; `of` gives the value of one.
    pub fn with<'a>(
        self,
        aead: &str,
        max_blocks: &str,
        of: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self> {
        let mut settings = self;
        if let Some(chosen) = self::aead(aead, of(aead))? {
            settings.aead = chosen;
        } else if settings.aead.is_standard() && of(KEY_SIZE_PROPERTY) == Some("128") {
            settings.aead = Aead::Aes128Gcm;
        }
        if let Some(blocks) = of(max_blocks) {
            settings.max_blocks =
                blocks.parse().ok().filter(|blocks| *blocks > 0).ok_or_else(|| {
                    let expected = "expected a whole number above 0";
                    Error::Setting(format!("{max_blocks} is {blocks:?}: {expected}"))
                })?;
        }
        Ok(settings)
    }
}

/// The AEAD of that name, if one is named.
pub fn aead(setting: &str, name: Option<&str>) -> Result<Option<Aead>> {
    let Some(name) = name else { return Ok(None) };
    match Aead::from_name(name) {
        Some(aead) => Ok(Some(aead)),
        None => {
            let known = Aead::ALL.map(Aead::name).join(", ");
            Err(Error::Setting(format!("{setting} is {name:?}: expected one of {known}")))
        }
    }
}
