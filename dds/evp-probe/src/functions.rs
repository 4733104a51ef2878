// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of OpenSSL 3 that are watched, and what each is to an operation.

use crate::operation::{Class, Part};

/// What a call means. Numbers are positions among the arguments.
#[derive(Clone, Copy)]
pub enum Role {
    /// Makes a context; the result is its address.
    New,
    /// Ends one.
    Free,
    /// Empties one for its next use.
    Reset,
    /// Copies one: the second argument's operation goes on in the first, too.
    Copy,
    /// Sets cipher (second argument), key and nonce of a cipher context.
    CipherInit(Direction),
    /// `(ctx, out, outl, in, inl)`; without `out` the bytes are authenticated only.
    CipherUpdate,
    /// The last call of an operation.
    CipherFinal,
    /// `EVP_Cipher(ctx, out, in, inl)`: an update; with neither input nor output, the last call.
    CipherWhole,
    /// `EVP_CIPHER_CTX_ctrl(ctx, type, ..)`: tags and lengths.
    Control,
    /// Begins a MAC or a signature; where the key is an EVP_PKEY, its position, since HMAC keys
    /// are among them.
    MacInit(Class, Option<usize>),
    /// `(ctx, in, inl)`.
    MacUpdate,
    /// `(ctx, out, ..)`; without `out` it only asks for the length, if that is so marked.
    MacFinal { asks_length: bool },
    /// `(ctx, out, outl, in, inl)`: update and end in one.
    SignWhole,
    /// `(ctx, sig, siglen, in, inl)`.
    VerifyWhole,
    /// `HMAC(md, key, key_len, data, data_len, out, out_len)`.
    Hmac,
    /// Random bytes, as many as the argument at this position says. OpenSSL's generator is a block
    /// cipher and calls what is watched here; that belongs to the request, and is counted apart.
    Random(usize),
    /// Ours, for calibration.
    Nothing(Part),
}

/// How a function says whether it encrypts.
#[derive(Clone, Copy)]
pub enum Direction {
    /// By its name.
    Encrypt,
    /// By its name.
    Decrypt,
    /// By the argument at this position.
    Argument(usize),
}

/// A watched function.
pub struct Function {
    /// With the zero byte that dlvsym(3) wants.
    pub name: &'static str,
    /// What it means.
    pub role: Role,
}

impl Function {
    /// The part of an operation that its time belongs to.
    pub fn part(&self) -> Part {
        match self.role {
            Role::New | Role::Free | Role::Reset | Role::Copy => Part::Context,
            Role::CipherInit(_) | Role::MacInit(..) => Part::Init,
            Role::CipherUpdate
            | Role::CipherWhole
            | Role::MacUpdate
            | Role::SignWhole
            | Role::VerifyWhole
            | Role::Hmac
            | Role::Random(_) => Part::Update,
            Role::CipherFinal | Role::MacFinal { .. } => Part::Final,
            Role::Control => Part::Tag,
            Role::Nothing(part) => part,
        }
    }
}

macro_rules! functions {
    ($($index:literal $name:ident: $role:expr;)*) => {
        /// All of them; `shim` numbers its entries by this table.
        pub static FUNCTIONS: &[Function] = &[
            $(Function { name: concat!(stringify!($name), "\0"), role: $role },)*
        ];
        /// The exported entries.
        #[allow(non_snake_case)]
        pub mod entry {
            crate::shim::entries!($($index $name)*);
        }

    };
}

use Direction::{Argument, Decrypt, Encrypt};

functions! {
    0 EVP_CIPHER_CTX_new: Role::New;
    1 EVP_CIPHER_CTX_free: Role::Free;
    2 EVP_CIPHER_CTX_reset: Role::Reset;
    3 EVP_CIPHER_CTX_copy: Role::Copy;
    4 EVP_CIPHER_CTX_ctrl: Role::Control;
    5 EVP_EncryptInit: Role::CipherInit(Encrypt);
    6 EVP_EncryptInit_ex: Role::CipherInit(Encrypt);
    7 EVP_EncryptInit_ex2: Role::CipherInit(Encrypt);
    8 EVP_DecryptInit: Role::CipherInit(Decrypt);
    9 EVP_DecryptInit_ex: Role::CipherInit(Decrypt);
    10 EVP_DecryptInit_ex2: Role::CipherInit(Decrypt);
    11 EVP_CipherInit: Role::CipherInit(Argument(4));
    12 EVP_CipherInit_ex: Role::CipherInit(Argument(5));
    13 EVP_CipherInit_ex2: Role::CipherInit(Argument(4));
    14 EVP_EncryptUpdate: Role::CipherUpdate;
    15 EVP_DecryptUpdate: Role::CipherUpdate;
    16 EVP_CipherUpdate: Role::CipherUpdate;
    17 EVP_EncryptFinal: Role::CipherFinal;
    18 EVP_EncryptFinal_ex: Role::CipherFinal;
    19 EVP_DecryptFinal: Role::CipherFinal;
    20 EVP_DecryptFinal_ex: Role::CipherFinal;
    21 EVP_CipherFinal: Role::CipherFinal;
    22 EVP_CipherFinal_ex: Role::CipherFinal;
    23 EVP_Cipher: Role::CipherWhole;
    24 EVP_MAC_CTX_new: Role::New;
    25 EVP_MAC_CTX_free: Role::Free;
    26 EVP_MAC_init: Role::MacInit(Class::Mac, None);
    27 EVP_MAC_update: Role::MacUpdate;
    28 EVP_MAC_final: Role::MacFinal { asks_length: true };
    29 HMAC_CTX_new: Role::New;
    30 HMAC_CTX_free: Role::Free;
    31 HMAC_CTX_reset: Role::Reset;
    32 HMAC_Init_ex: Role::MacInit(Class::Mac, None);
    33 HMAC_Update: Role::MacUpdate;
    34 HMAC_Final: Role::MacFinal { asks_length: false };
    35 HMAC: Role::Hmac;
    36 EVP_MD_CTX_new: Role::New;
    37 EVP_MD_CTX_free: Role::Free;
    38 EVP_MD_CTX_reset: Role::Reset;
    39 EVP_DigestSignInit: Role::MacInit(Class::Sign, Some(4));
    40 EVP_DigestSignUpdate: Role::MacUpdate;
    41 EVP_DigestSignFinal: Role::MacFinal { asks_length: true };
    42 EVP_DigestSign: Role::SignWhole;
    43 EVP_DigestVerifyInit: Role::MacInit(Class::Verify, Some(4));
    44 EVP_DigestVerifyUpdate: Role::MacUpdate;
    45 EVP_DigestVerifyFinal: Role::MacFinal { asks_length: false };
    46 EVP_DigestVerify: Role::VerifyWhole;
    47 RAND_bytes: Role::Random(1);
    48 RAND_priv_bytes: Role::Random(1);
    49 RAND_bytes_ex: Role::Random(2);
    50 RAND_priv_bytes_ex: Role::Random(2);
    51 warifu_evp_probe_init: Role::Nothing(Part::Init);
    52 warifu_evp_probe_update: Role::Nothing(Part::Update);
    53 warifu_evp_probe_final: Role::Nothing(Part::Final);
}

/// The first of calibration's own, which follow each other.
pub const NOTHING: usize = 51;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_count_as_the_table_does() {
        assert_eq!(FUNCTIONS.len(), NOTHING + 3);
        assert_eq!(FUNCTIONS[NOTHING].name, "warifu_evp_probe_init\0");
        assert_eq!(FUNCTIONS[14].name, "EVP_EncryptUpdate\0");
    }
}
