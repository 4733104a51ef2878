// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the probe itself costs: its whole way, with a function that does nothing in OpenSSL's
//! place, in this process and on this machine as it is now.

use crate::functions::entry;
use crate::message;
use crate::operation::Class;
use crate::record::{self, Number, Total, now};

/// Batches; the median of them counts, so that an interrupt does not.
const BATCHES: usize = 15;
/// Operations of a batch, of three calls each.
const OPERATIONS: u64 = 100;
const CALLS: u64 = 3;

/// Measures, and puts the costs of a call and of a message on record, in ps.
pub fn run() {
    let Some(file) = record::file() else { return };
    // Once without a clock: tables are made, memory is touched.
    batch();
    let mut calls = [0; BATCHES];
    for cost in &mut calls {
        let begun = now();
        batch();
        *cost = now().saturating_sub(begun);
    }
    let noted = file.now_total(Class::Encrypt, Total::ns);
    let operations = file.now_total(Class::Encrypt, Total::operations);
    let mut messages = [0; BATCHES];
    for cost in &mut messages {
        let begun = now();
        for _ in 0..OPERATIONS {
            message::nothing();
        }
        *cost = now().saturating_sub(begun);
    }
    file.set(Number::call_cost_ps, median(&mut calls).saturating_mul(1000) / (OPERATIONS * CALLS));
    file.set(
        Number::call_inside_ps,
        noted.saturating_mul(1000) / operations.saturating_mul(CALLS).max(1),
    );
    file.set(Number::message_cost_ps, median(&mut messages).saturating_mul(1000) / OPERATIONS);
}

fn batch() {
    type Entry = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize);
    let of = |entry: unsafe extern "C" fn()| -> Entry {
        // SAFETY: entries take what six registers hold.
        unsafe { std::mem::transmute::<unsafe extern "C" fn(), Entry>(entry) }
    };
    let init = of(entry::warifu_evp_probe_init);
    let update = of(entry::warifu_evp_probe_update);
    let last = of(entry::warifu_evp_probe_final);
    // No context has this address.
    const CONTEXT: usize = 16;
    for _ in 0..OPERATIONS {
        // SAFETY: these three look at nothing but the address of the context.
        unsafe {
            init(CONTEXT, 0, 0, 0, 0, 0);
            update(CONTEXT, 1, 0, 1, 16, 0);
            last(CONTEXT, 0, 0, 0, 0, 0);
        }
    }
}

fn median(of: &mut [u64]) -> u64 {
    of.sort_unstable();
    of.get(of.len() / 2).copied().unwrap_or(0)
}
