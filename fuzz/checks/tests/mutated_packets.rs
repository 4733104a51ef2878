// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of the DDS plugin that were changed on their way, of every AEAD, protection and place.
//! `make soak` does a million of them:
//!
//!     DDS_MUTATED_PACKETS=1000000 cargo test -p warifu-fuzz-checks \
//!         --test mutated_packets -- --nocapture

use std::env;

use warifu_fuzz_checks::dds_crypto::mutate;

/// Enough to meet every place some dozens of times.
const QUICK: u64 = 5_000;
const SEED: u64 = 13;

#[test]
fn no_changed_packet_is_read_as_another_than_was_sent() {
    let chosen = env::var("DDS_MUTATED_PACKETS").ok();
    let packets = chosen.map_or(QUICK, |text| text.parse().expect("DDS_MUTATED_PACKETS"));
    let mutated = mutate(packets, SEED);
    assert_eq!(mutated.rejected + mutated.identical, packets);
    assert!(mutated.rejected > mutated.identical * 10, "hardly any was refused: {mutated:?}");
    println!(
        "{packets} packets changed: {} refused, {} read as they were sent",
        mutated.rejected, mutated.identical
    );
}
