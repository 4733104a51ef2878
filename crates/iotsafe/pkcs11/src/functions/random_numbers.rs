// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random number generation functions (PKCS#11 2.40 section 5.15).

use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::library::Library;
use crate::rv::{Result, fail};

/// The most random bytes of one call; the card gives 256 an exchange.
const RANDOM_MAX_BYTES: usize = 1 << 20;

/// C_GenerateRandom: bytes of the card's generator.
pub fn generate_random(
    library: &Library,
    session: CK_SESSION_HANDLE,
    length: usize,
) -> Result<Zeroizing<Vec<u8>>> {
    let session = library.session(session)?;
    if length > RANDOM_MAX_BYTES {
        return fail(CKR_ARGUMENTS_BAD);
    }
    let mut bytes = Zeroizing::new(vec![0; length]);
    if length > 0 {
        session.slot.with_token(|token, deadline| token.random(&mut bytes, deadline))?;
    }
    Ok(bytes)
}
