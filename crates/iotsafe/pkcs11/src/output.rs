// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions that give bytes of variable length (PKCS#11 2.40 section 5.2).

use zeroize::Zeroizing;

/// What the caller has for a result: None for a null pointer, which asks for the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room(pub Option<usize>);

/// What the caller gets.
pub enum Output {
    /// The length alone.
    Length(usize),
    /// The length, and CKR_BUFFER_TOO_SMALL.
    TooSmall(usize),
    /// The bytes.
    Bytes(Zeroizing<Vec<u8>>),
}

impl Room {
    /// What to answer without doing the work; None if the result fits.
    #[must_use]
    pub fn unless_fits(self, length: usize) -> Option<Output> {
        match self.0 {
            None => Some(Output::Length(length)),
            Some(room) if room < length => Some(Output::TooSmall(length)),
            Some(_) => None,
        }
    }
}

impl Output {
    /// The bytes of a result.
    #[must_use]
    pub fn bytes(bytes: Vec<u8>) -> Output {
        Output::Bytes(Zeroizing::new(bytes))
    }
}
