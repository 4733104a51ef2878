// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results of variable length (PKCS#11 2.40 section 5.2).

use zeroize::Zeroizing;

/// The size of the caller's buffer; None for a null pointer, which asks for the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSize(pub Option<usize>);

/// What the function returns.
pub enum Output {
    /// The length alone.
    Length(usize),
    /// The length, and CKR_BUFFER_TOO_SMALL.
    TooSmall(usize),
    /// The bytes.
    Bytes(Zeroizing<Vec<u8>>),
}

impl BufferSize {
    /// The answer if the result does not fit, which needs no work; None if it fits.
    #[must_use]
    pub fn unless_fits(self, length: usize) -> Option<Output> {
        match self.0 {
            None => Some(Output::Length(length)),
            Some(size) if size < length => Some(Output::TooSmall(length)),
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
