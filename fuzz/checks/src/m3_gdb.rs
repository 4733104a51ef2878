// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any bytes from a debugger: nothing panics, and answers are bounded.

use warifu_m3::debug::{Debugger, State};
use warifu_m3::session::{Session, Setup};

use crate::m3_run::elf;

/// Bytes of an answer to one packet at most: all escaped, with a console line before.
const MOST_ANSWERED: usize = 128 * 1024;
const MOST: u64 = 20_000;
/// str r0, [sp, #0]; adds r0, #1; b to the first
const ENDLESS: [u16; 3] = [0x9000, 0x3001, 0xe7fc];

/// Checks one input: lines, which become packets unless they begin with `$` or Ctrl-C.
pub fn check(bytes: &[u8]) {
    let code: Vec<u8> = ENDLESS.into_iter().flat_map(u16::to_le_bytes).collect();
    let setup = Setup { chip: "stm32f103".into(), ..Setup::default() };
    let session = Session::new(&elf(&code), &setup).expect("it can be loaded");
    let mut debugger = Debugger::new(session, MOST);
    for line in bytes.split(|byte| *byte == b'\n') {
        if !debugger.is_connected() {
            debugger.connected();
        }
        match line {
            [b'$' | 3, ..] => debugger.receive(line),
            body => debugger.receive(&packet(body)),
        }
        debugger.run(300);
        assert!(debugger.take_output().len() <= MOST_ANSWERED);
        assert!(debugger.session().machine.instructions <= MOST);
        if let State::Ended(_) = debugger.state() {
            return;
        }
    }
}

fn packet(body: &[u8]) -> Vec<u8> {
    let sum = body.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    [b"$", body, format!("#{sum:02x}").as_bytes()].concat()
}
