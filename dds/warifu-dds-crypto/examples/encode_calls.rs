// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Encrypts samples through the function that Cyclone calls, for a counter of instructions, which a
//! busy machine does not disturb as it does a clock:
//!
//!     valgrind --tool=callgrind \
//!         --toggle-collect=warifu_dds_crypto::shell::calls::encode_serialized_payload \
//!         target/release/examples/encode_calls AES-256-GCM 10000 64
//!
//! Divided by the number of calls, it is what one costs; malloc's and free's parts are named in
//! callgrind's list.

use std::env;

#[path = "../benches/domain/mod.rs"]
mod domain;

use domain::{AEADS, Domain};
use warifu_dds_crypto::shell::abi::Seq;

const USAGE: &str = "usage: encode_calls AEAD CALLS BYTES";

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [aead, calls, bytes] = &arguments[..] else { panic!("{USAGE}") };
    let found = AEADS.iter().find(|(name, _)| name == aead);
    let (_, init) = found.unwrap_or_else(|| panic!("{aead} is no AEAD: {USAGE}"));
    let calls: u32 = calls.parse().expect(USAGE);
    let bytes: u32 = bytes.parse().expect(USAGE);
    let mut sample = vec![1_u8; bytes as usize];
    let plain = Seq { maximum: bytes, length: bytes, buffer: sample.as_mut_ptr() };
    let domain = Domain::new(*init);
    for _ in 0..calls {
        domain.encode(&plain);
    }
}
