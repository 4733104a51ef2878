// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times one encryption with each AEAD of the plugin, as JSON on standard output.
//!
//! *keyed* is what the plugin does: the key is set up once a session. *with_key* sets it up for
//! each call, as SUPERCOP's `crypto_aead_encrypt` and a middleware that makes a context a message
//! do. Each call is timed alone, less what reading the clock twice takes; *warm_ns* is a call's
//! share of many in a row.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use warifu_dds_crypto::algorithm::Aead;
use warifu_dds_crypto::cipher::{Cipher, Tag};

const USAGE: &str = "usage: warifu-aead-bench [--bytes N].. [--calls N] | --build
  --bytes N   message length, 0 to 16777216; repeatable (16)
  --calls N   calls of each kind, 1 to 10000000 (10000)
  --build     how this program was built";
const MOST_BYTES: usize = 16 * 1024 * 1024;
const MOST_CALLS: usize = 10_000_000;
/// Calls that are not counted: caches and branch predictors fill.
const WARM_UP: usize = 100;

fn main() -> ExitCode {
    let mut lengths = Vec::new();
    let mut calls = 10_000;
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let mut number = |most| arguments.next().as_deref().and_then(|text| parse(text, most));
        match option.as_str() {
            "--help" => return said(USAGE),
            "--build" => return said(&format!("{{\"build\":\"{}\"}}", build())),
            "--bytes" => match number(MOST_BYTES) {
                Some(bytes) => lengths.push(bytes),
                None => return refused("--bytes: expected a number from 0 to 16777216"),
            },
            "--calls" => match number(MOST_CALLS) {
                Some(some) if some > 0 => calls = some,
                _ => return refused("--calls: expected a number from 1 to 10000000"),
            },
            other => return refused(&format!("{other} is unknown; see --help")),
        }
    }
    if lengths.is_empty() {
        lengths.push(16);
    }
    let clock_ns = clock_ns();
    let rows: Option<Vec<String>> = lengths
        .iter()
        .flat_map(|&bytes| Aead::ALL.iter().map(move |&aead| (aead, bytes)))
        .map(|(aead, bytes)| row(aead, bytes, calls, clock_ns))
        .collect();
    let Some(rows) = rows else { return refused("an AEAD refuses a message: use a smaller one") };
    said(&format!(
        "{{\"format\":\"warifu-aead-bench\",\"version\":1,\"build\":\"{}\",\"clock_ns\":{clock_ns},\
         \"calls\":{calls},\"rows\":[{}]}}",
        build(),
        rows.join(",")
    ))
}

fn said(text: &str) -> ExitCode {
    println!("{text}");
    ExitCode::SUCCESS
}

fn refused(text: &str) -> ExitCode {
    eprintln!("warifu-aead-bench: {text}");
    ExitCode::from(2)
}

fn parse(text: &str, most: usize) -> Option<usize> {
    text.parse().ok().filter(|&number| number <= most)
}

const fn build() -> &'static str {
    if cfg!(debug_assertions) { "development" } else { "release" }
}

/// What two readings of the clock differ by at least, ns.
fn clock_ns() -> u64 {
    (0..10_000).map(|_| ns_since(Instant::now())).min().unwrap_or(0)
}

fn ns_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Nothing where the AEAD takes no such message.
fn row(aead: Aead, bytes: usize, calls: usize, clock_ns: u64) -> Option<String> {
    let key = vec![7; aead.key_bytes()];
    let mut nonce = vec![0; aead.nonce_bytes()];
    let mut message = vec![1; bytes];
    let cipher = Cipher::new(aead, &key)?;
    // What it takes once it takes again.
    seal(&cipher, &nonce, &mut message)?;
    let with_key = times(calls, clock_ns, &mut nonce, |nonce| {
        Cipher::new(aead, black_box(&key))
            .and_then(|cipher| seal(&cipher, nonce, &mut message))
            .is_some()
    });
    let keyed =
        times(calls, clock_ns, &mut nonce, |nonce| seal(&cipher, nonce, &mut message).is_some());
    let begun = Instant::now();
    for index in 0..calls {
        count(&mut nonce, index);
        seal(&cipher, &nonce, &mut message);
    }
    let share = u64::try_from(calls).unwrap_or(u64::MAX);
    let warm = ns_since(begun) / share;
    Some(format!(
        "{{\"aead\":\"{}\",\"bytes\":{bytes},\"keyed\":{keyed},\"with_key\":{with_key},\
         \"warm_ns\":{warm}}}",
        aead.name()
    ))
}

fn seal(cipher: &Cipher, nonce: &[u8], message: &mut [u8]) -> Option<Tag> {
    black_box(cipher.seal(black_box(nonce), &[], black_box(message)))
}

/// Another nonce for each call, as senders do. Nothing here is ever sent.
fn count(nonce: &mut [u8], index: usize) {
    nonce[..8].copy_from_slice(&(index as u64).to_le_bytes());
}

/// Mean, least, median and most of calls that are timed one by one, ns, as JSON.
fn times(
    calls: usize,
    clock_ns: u64,
    nonce: &mut [u8],
    mut call: impl FnMut(&[u8]) -> bool,
) -> String {
    let mut found: Vec<u64> = (0..WARM_UP + calls)
        .map(|index| {
            count(nonce, index);
            let begun = Instant::now();
            black_box(call(nonce));
            ns_since(begun).saturating_sub(clock_ns)
        })
        .skip(WARM_UP)
        .collect();
    found.sort_unstable();
    let mean = found.iter().sum::<u64>() as f64 / found.len() as f64;
    format!(
        "{{\"mean_ns\":{mean:.1},\"minimum_ns\":{},\"median_ns\":{},\"maximum_ns\":{}}}",
        found[0],
        found[found.len() / 2],
        found[found.len() - 1]
    )
}
