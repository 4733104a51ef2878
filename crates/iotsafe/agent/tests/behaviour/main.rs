// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What callers can rely on: turns, logins, rights, volatile keys, a card that comes and goes.

#[path = "../common/mod.rs"]
mod common;

mod ahead;
mod attacks;
mod callers;
mod card;
mod pins;
mod turns;

use std::collections::VecDeque;

use common::{Bench, World, soon};
use warifu_card::PinScope;
use warifu_card::faults::Plan;
use warifu_iotsafe_client::{Hash, SignInput, Token, TokenError};

/// The client key of the usual slots, and the volatile pair.
const KEY: [u8; 1] = [1];
const VOLATILE: [u8; 1] = [4];

fn nothing_wrong() -> Plan {
    Plan::Script(VecDeque::new())
}

fn bench(pin: Option<PinScope>, held: Option<&str>) -> Bench {
    Bench::new(World::new(pin, nothing_wrong(), 1), held, Vec::new())
}

fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

fn digest(number: u32) -> [u8; 32] {
    let mut digest = [0; 32];
    digest[..4].copy_from_slice(&number.to_be_bytes());
    digest
}

fn sign(token: &mut impl Token, number: u32) -> Result<[u8; 64], TokenError> {
    token.sign(&KEY, SignInput::Digest(Hash::Sha256, &digest(number)), soon())
}
