// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When the kernel handed each packet to a TUN device.
//!
//! A packet's delay should count from the moment at which it left its sender. This process sees it
//! only after being woken, which on an idle virtual machine takes some tens of microseconds, each
//! way. So a BPF filter on the device (`TUNSETFILTEREBPF`, Linux drivers/net/tun.c,
//! `run_ebpf_filter` in `tun_net_xmit`) passes every packet unchanged and notes the time in a ring
//! that this process maps. It also makes the reported lateness whole: a wake-up that came late is
//! in it.

use crate::sys::{self, SharedWords};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use warifu_model::Nanos;

/// Stamps kept; a power of two, and more than the device's queue holds.
const RING: u64 = 16_384;
/// The ring's words: how many stamps were made, one unused, then for each stamp the time and the
/// packet's signature.
const WORDS: usize = 2 + 2 * RING as usize;
/// Where the signature is in an IPv4 header: identification, fragment, time to live, protocol,
/// header checksum (RFC 791 section 3.1).
const SIGNATURE: std::ops::Range<usize> = 4..12;

/// The stamps of one device, to be asked for once for each packet in the order of reading.
#[derive(Debug)]
pub struct Stamps {
    words: SharedWords,
    next: u64,
}

impl Stamps {
    /// Has the kernel stamp the packets of a TUN device.
    ///
    /// # Errors
    /// Where the kernel has no such filters or does not permit them.
    pub fn attach(tun: BorrowedFd<'_>) -> io::Result<Stamps> {
        if cfg!(target_endian = "big") {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let array = sys::bpf_shared_array(WORDS as u32 * 8)?;
        let program = sys::bpf_socket_filter(&program(array.as_fd()))?;
        let words = SharedWords::map(&array, WORDS)?;
        sys::tun_set_filter(tun, program.as_fd())?;
        Ok(Stamps { words, next: 0 })
    }

    /// The stamp of a packet that was just read, at `now`; `None` if it has none.
    pub fn of(&mut self, packet: &[u8], now: Nanos) -> Option<Nanos> {
        let made = self.words.load(0);
        let (stamp, next) =
            find(|index| self.words.load(index), self.next, made, signature(packet));
        self.next = next;
        stamp.filter(|&stamp| stamp <= now)
    }
}

/// Looks for a packet's stamp from number `next` on, of `made`; the stamp, and the number at which
/// to go on.
fn find(word: impl Fn(usize) -> u64, next: u64, made: u64, signature: u64) -> (Option<Nanos>, u64) {
    // Older ones have been overwritten.
    let oldest = made.saturating_sub(RING);
    for number in next.max(oldest)..made {
        let at = 2 + 2 * (number % RING) as usize;
        if word(at + 1) == signature {
            return (Some(Nanos(word(at))), number + 1);
        }
        // Another packet's, which the device stamped and then dropped because its queue was full.
    }
    (None, made)
}

fn signature(packet: &[u8]) -> u64 {
    packet.get(SIGNATURE).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// The filter. As C:
/// ```c
/// u64 signature = 0; u32 key = 0;
/// bpf_skb_load_bytes(skb, 4, &signature, 8);
/// struct ring *ring = bpf_map_lookup_elem(&array, &key);
/// if (ring) {
///     struct stamp *stamp = &ring->stamps[__sync_fetch_and_add(&ring->made, 1) & (RING - 1)];
///     stamp->signature = signature;
///     stamp->time = bpf_ktime_get_ns();   // CLOCK_MONOTONIC
/// }
/// return skb->len;
/// ```
/// The numbers are those of Linux include/uapi/linux/bpf.h and
/// Documentation/bpf/standardization/instruction-set.rst.
fn program(array: BorrowedFd<'_>) -> [u64; 27] {
    use std::os::fd::AsRawFd;
    const LOAD_BYTES: i32 = 26;
    const LOOKUP: i32 = 1;
    const KTIME: i32 = 5;
    const FRAME: u8 = 10;
    let op = |code: u8, to: u8, from: u8, offset: i16, value: i32| {
        let registers = u64::from(to | from << 4) << 8;
        u64::from(code) | registers | u64::from(offset as u16) << 16 | u64::from(value as u32) << 32
    };
    let copy = |to, from| op(0xbf, to, from, 0, 0);
    let set = |to, value| op(0xb7, to, 0, 0, value);
    let add = |to, value| op(0x07, to, 0, 0, value);
    let call = |function| op(0x85, 0, 0, 0, function);
    [
        copy(6, 1),
        op(0x62, FRAME, 0, -4, 0),  // the key
        op(0x7a, FRAME, 0, -16, 0), // the signature
        copy(1, 6),
        set(2, SIGNATURE.start as i32),
        copy(3, FRAME),
        add(3, -16),
        set(4, SIGNATURE.len() as i32),
        call(LOAD_BYTES),
        op(0x18, 1, 1, 0, array.as_raw_fd()), // a map by descriptor takes two slots
        0,
        copy(2, FRAME),
        add(2, -4),
        call(LOOKUP),
        op(0x15, 0, 0, 10, 0), // no ring: on to the return
        copy(7, 0),
        set(8, 1),
        op(0xdb, 7, 8, 0, 1), // fetch and add
        op(0x57, 8, 0, 0, RING as i32 - 1),
        op(0x67, 8, 0, 0, 4),
        op(0x0f, 7, 8, 0, 0),
        op(0x79, 1, FRAME, -16, 0),
        op(0x7b, 7, 1, 24, 0),
        call(KTIME),
        op(0x7b, 7, 0, 16, 0),
        op(0x61, 0, 6, 0, 0), // the length is the first word of what a filter sees
        op(0x95, 0, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A packet with an identification.
    fn packet(number: u16) -> [u8; 20] {
        let mut packet = [0x45; 20];
        packet[4..6].copy_from_slice(&number.to_be_bytes());
        packet
    }

    proptest! {
        #[test]
        fn stamps_match_packets_whichever_were_dropped(
            dropped in prop::collection::vec(any::<bool>(), 0..300),
        ) {
            // Stamp n is the time 1000 + n.
            let word = |index: usize| {
                let number = (index - 2) as u64 / 2;
                let of_packet = signature(&packet(number as u16));
                if index.is_multiple_of(2) { 1000 + number } else { of_packet }
            };
            let mut next = 0;
            for (number, _) in dropped.iter().enumerate().filter(|(_, dropped)| !**dropped) {
                let wanted = signature(&packet(number as u16));
                let (stamp, after) = find(word, next, dropped.len() as u64, wanted);
                prop_assert_eq!(stamp, Some(Nanos(1000 + number as u64)));
                next = after;
            }
        }
    }

    #[test]
    fn a_packet_without_a_stamp_finds_none_and_those_after_it_do_again() {
        let word =
            |index: usize| if index.is_multiple_of(2) { 1000 } else { signature(&packet(1)) };
        assert_eq!(find(word, 0, 3, signature(&packet(2))), (None, 3));
        assert_eq!(find(word, 3, 4, signature(&packet(1))), (Some(Nanos(1000)), 4));
        assert_eq!(find(word, 3, 3, signature(&packet(1))), (None, 3));
    }

    #[test]
    fn overwritten_stamps_are_passed_over() {
        let word = |index: usize| if index.is_multiple_of(2) { index as u64 } else { 7 };
        let made = RING + 5;
        assert_eq!(find(word, 0, made, 7), (Some(Nanos(2 + 2 * 5)), 6));
    }

    #[test]
    fn a_short_packet_has_a_signature_too() {
        assert_eq!(signature(&[0x45; 11]), 0);
        assert_ne!(signature(&[0x45; 12]), 0);
    }
}
