// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What stands for a primitive that a device has no figure of: other primitives that it is made
//! of by its definition. Each rule asks for figures alone and never for another rule, so that none
//! goes round in circles.

use super::cipher;
use super::device::{DeviceProfile, Entry};
use super::recipe::{CallCount, InstructionCount};
use crate::case::Group;
use crate::kind::Kind;
use crate::primitive::{HashAlgorithm, Primitive};

/// The figure that prices calls, and how many of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Priced<'a> {
    /// The primitive whose figure it is.
    pub(super) figure: Primitive,
    pub(super) entry: &'a Entry,
    pub(super) calls: u32,
    pub(super) bytes: f64,
    /// No better than this, whatever the figure's own kind.
    pub(super) kind: Kind,
}

/// The price of calls on a device: its own figure, what stands in for that, or the instructions
/// that the library's own code takes for it. `None` if it has nothing of these.
pub(super) fn price(
    device: &DeviceProfile,
    counted: Option<InstructionCount>,
    wanted: CallCount,
) -> Option<Priced<'_>> {
    let CallCount { primitive, calls, bytes } = wanted;
    let figure = |figure: Primitive, calls: u32, bytes: f64, kind: Kind| {
        let entry = device.primitives.get(&figure)?;
        Some(Priced { figure, entry, calls, bytes, kind })
    };
    figure(primitive, calls, bytes, Kind::Measured)
        .or_else(|| match primitive {
            Primitive::Hmac(hash) => hmac_of_hash(device, hash, wanted),
            // HKDF-Extract is an HMAC (RFC 5869 section 2.2), and so is HKDF-Expand of a block or
            // less (section 2.3), which TLS 1.3 does not go beyond.
            Primitive::Hkdf(hash) => figure(Primitive::Hmac(hash), calls, bytes, Kind::Simulated)
                .or_else(|| hmac_of_hash(device, hash, wanted)),
            Primitive::Prf(hash) => {
                let hmacs = hmacs_of_prf(hash, wanted);
                figure(hmacs.primitive, hmacs.calls, hmacs.bytes, Kind::Simulated)
                    .or_else(|| hmac_of_hash(device, hash, hmacs))
            }
            // Both are the function X25519, of the base point or of the other's (RFC 7748
            // section 6.1).
            Primitive::EcdhKeygen(Group::X25519) => {
                figure(Primitive::EcdhDerive(Group::X25519), calls, bytes, Kind::Simulated)
            }
            Primitive::EcdhDerive(Group::X25519) => {
                figure(Primitive::EcdhKeygen(Group::X25519), calls, bytes, Kind::Simulated)
            }
            // Both multiply a point; that a library has no quicker way for the base point is
            // assumed, and takes longer rather than less.
            Primitive::EcdhKeygen(group) => {
                figure(Primitive::EcdhDerive(group), calls, bytes, Kind::Assumed)
            }
            // The same cipher and MAC over the same bytes, in the other order (SP 800-38D
            // algorithms 4 and 5, RFC 8439 section 2.8).
            Primitive::Seal(cipher) => {
                figure(Primitive::Open(cipher), calls, bytes, Kind::Simulated)
            }
            Primitive::Open(_) | Primitive::Mac(_) => cipher::stands_in(primitive)
                .find_map(|other| figure(other, calls, bytes, Kind::Simulated)),
            // Hash_DRBG with SHA-256: a hash of a seed of 55 B for each block, and another for the
            // next state (SP 800-90A section 10.1.1.4). Which generator a library has is assumed.
            Primitive::Random => {
                let blocks = (bytes / 32.0).ceil();
                let hashes = blocks + f64::from(calls);
                let hash = Primitive::Hash(HashAlgorithm::Sha256);
                figure(hash, hashes.min(f64::from(u32::MAX)) as u32, 64.0 * hashes, Kind::Assumed)
            }
            _ => None,
        })
        .or_else(|| {
            let counted = counted?;
            let instructions = counted.fixed * f64::from(calls) + counted.per_byte * bytes;
            figure(Primitive::Instruction, 0, instructions, Kind::Simulated)
        })
}

/// RFC 5246 section 5: two HMACs for each digest of output, one of A(i - 1), where A(0) is the
/// seed, and one of A(i) and the seed.
fn hmacs_of_prf(hash: HashAlgorithm, wanted: CallCount) -> CallCount {
    let calls = f64::from(wanted.calls);
    let digest = f64::from(hash.digest_bytes());
    let digests = (wanted.bytes / digest).ceil().max(calls);
    CallCount {
        primitive: Primitive::Hmac(hash),
        calls: (2.0 * digests).min(f64::from(u32::MAX)) as u32,
        bytes: (2.0 * digests - calls) * digest + (digests + calls) * PRF_SEED_BYTES,
    }
}

/// Label and seed of the PRF, B, about the mean of what TLS 1.2 derives: 77 for the keys (RFC 5246
/// section 6.3), 54 for the master secret (RFC 7627 section 4), 47 for a Finished (section 7.4.9).
const PRF_SEED_BYTES: f64 = 60.0;

/// RFC 2104 section 2: a hash of a block and the message, and one of a block and that digest.
fn hmac_of_hash(
    device: &DeviceProfile,
    hash: HashAlgorithm,
    wanted: CallCount,
) -> Option<Priced<'_>> {
    let figure = Primitive::Hash(hash);
    let entry = device.primitives.get(&figure)?;
    let calls = f64::from(wanted.calls);
    let (block, digest) = (f64::from(hash.block_bytes()), f64::from(hash.digest_bytes()));
    let each = if wanted.calls > 0 { wanted.bytes / calls } else { 0.0 };
    let bytes = if entry.call_ns(false) >= entry.byte_ns() * block {
        // What a call takes beside its bytes holds its padding.
        2.0 * block + each + digest
    } else {
        // A mere rate, as benchmarks of long messages give, says nothing of padding: a bit and the
        // length (FIPS 180-4 section 5.1), up to a whole block. Four compressions at the least.
        let padding = 1.0 + block / 8.0;
        let padded = |bytes: f64| ((bytes + padding) / block).ceil() * block;
        padded(block + each) + padded(block + digest)
    };
    Some(Priced {
        figure,
        entry,
        calls: wanted.calls.saturating_mul(2),
        bytes: bytes * calls,
        kind: Kind::Simulated,
    })
}
