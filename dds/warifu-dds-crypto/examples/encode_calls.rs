// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Encrypts samples through the function that Cyclone calls, for a counter of instructions, which a
//! busy machine does not disturb as it does a clock. `malloc-and-free` in the place of an AEAD does
//! that alone, with a buffer of AES-GCM's length. `bench/run` subtracts one from the other;
//!
//!     valgrind --tool=callgrind \
//!         --toggle-collect=warifu_dds_crypto::shell::calls::encode_serialized_payload \
//!         target/release/examples/encode_calls AES-256-GCM 10000 64
//!
//! shows where they go.

use std::env;
use std::hint::black_box;

#[path = "../benches/domain/mod.rs"]
mod domain;

use domain::{AEADS, Domain, FRAME_BYTES};
use warifu_dds_crypto::shell::abi::Seq;

const USAGE: &str = "usage: encode_calls AEAD|malloc-and-free CALLS BYTES";

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [aead, calls, bytes] = &arguments[..] else { panic!("{USAGE}") };
    let calls: u32 = calls.parse().expect(USAGE);
    let bytes: u32 = bytes.parse().expect(USAGE);
    let mut sample = vec![1_u8; bytes as usize];
    if aead == "malloc-and-free" {
        for _ in 0..calls {
            // SAFETY: freed once.
            unsafe { libc::free(black_box(libc::malloc(black_box(sample.len() + FRAME_BYTES)))) };
        }
        return;
    }
    let found = AEADS.iter().find(|(name, _)| name == aead);
    let (_, init) = found.unwrap_or_else(|| panic!("{aead} is no AEAD: {USAGE}"));
    let plain = Seq { maximum: bytes, length: bytes, buffer: sample.as_mut_ptr() };
    let domain = Domain::new(*init);
    for _ in 0..calls {
        domain.encode(black_box(&plain));
    }
}
