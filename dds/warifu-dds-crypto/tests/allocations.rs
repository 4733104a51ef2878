// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message costs one allocation, its buffer, in both directions.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{ENCRYPT, ENCRYPT_ORIGIN, Governance, SIGN, message, pair, submessage, vec};
use warifu_dds_crypto::algorithm::Aead;

struct Counting;

thread_local!(static ALLOCATIONS: Cell<usize> = const { Cell::new(0) });

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: it is the system's allocator, with a count beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: from alloc, with the same layout.
        unsafe { System.dealloc(place, layout) }
    }
}

fn allocations<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATIONS.get();
    let given = call();
    (given, ALLOCATIONS.get() - before)
}

#[test]
fn a_message_costs_its_buffer_alone() {
    for aead in Aead::ALL {
        for governance in [SIGN, ENCRYPT, ENCRYPT_ORIGIN].map(Governance::of_all) {
            let (alice, bob) = pair(aead, governance);
            let (sample, one, whole) = ([7; 64], submessage(64), message(64));
            for round in 0..2000 {
                let ((), count) = allocations(|| {
                    let sent = alice.factory.encode_payload(alice.writer, &sample, vec);
                    let sent = sent.expect("sent");
                    let read = bob.factory.decode_payload(bob.reader, bob.peer_writer, &sent, vec);
                    read.expect("read");

                    let to = [alice.peer_reader];
                    let sent = alice.factory.encode_writer_submessage(alice.writer, &to, &one, vec);
                    let sent = sent.expect("sent");
                    bob.factory.preprocess(bob.participant, bob.peer, &sent).expect("known");
                    let (reader, writer) = (bob.reader, bob.peer_writer);
                    let read = bob.factory.decode_writer_submessage(reader, writer, &sent, vec);
                    read.expect("read");

                    let to = [alice.peer];
                    let sent = alice.factory.encode_message(alice.participant, &to, &whole, vec);
                    let sent = sent.expect("sent");
                    let read = bob.factory.decode_message(bob.participant, bob.peer, &sent, vec);
                    read.expect("read");
                });
                // Until sessions are known, and their latest nonces have their memory.
                if round >= 1100 {
                    assert_eq!(count, 6, "{aead:?}, {governance:?}, round {round}");
                }
            }
        }
    }
}
