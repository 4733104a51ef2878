// SPDX-License-Identifier: Apache-2.0 OR MIT
//! gdb's side of the protocol (its manual, appendix "Remote Protocol").

use warifu_m3::debug::{Debugger, State};

use crate::{MOST, session};

/// A client that speaks to a debugger without a connection.
pub struct Client {
    pub debugger: Debugger,
    received: Vec<u8>,
}

impl Client {
    /// A client of a program that is halted at reset.
    pub fn of(file: &[u8]) -> Self {
        Client::with_limit(file, MOST)
    }

    pub fn with_limit(file: &[u8], most: u64) -> Self {
        let mut debugger = Debugger::new(session(file), most);
        debugger.connected();
        Client { debugger, received: Vec::new() }
    }

    /// Sends a packet without waiting for its answer.
    pub fn send(&mut self, body: &str) {
        self.debugger.receive(&packet(body.as_bytes()));
    }

    /// Sends a packet; the answer.
    pub fn ask(&mut self, body: &str) -> String {
        self.send(body);
        self.answer().unwrap_or_else(|| panic!("{body} has an answer"))
    }

    /// Lets the program run until the debugger reports why it stopped, or 10,000 slices are over;
    /// the report, with what the console got before.
    pub fn until_stopped(&mut self) -> (String, String) {
        let mut console = String::new();
        for _ in 0..10_000 {
            self.debugger.run(1000);
            while let Some(answer) = self.answer() {
                match answer.strip_prefix('O') {
                    Some(digits) => console += &text(digits),
                    None => return (answer, console),
                }
            }
            if let State::Ended(stop) = self.debugger.state() {
                return (format!("{stop:?}"), console);
            }
        }
        panic!("the program does not stop");
    }

    pub fn go(&mut self, resume: &str) -> String {
        self.send(resume);
        self.until_stopped().0
    }

    /// `monitor COMMAND` and what it prints.
    pub fn monitor(&mut self, command: &str) -> String {
        let digits: String = command.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.send(&format!("qRcmd,{digits}"));
        let mut printed = String::new();
        while let Some(answer) = self.answer() {
            match answer.strip_prefix('O') {
                Some("K") => return printed,
                Some(digits) => printed += &text(digits),
                None => panic!("{answer}"),
            }
        }
        panic!("monitor {command} ends without OK");
    }

    /// A register by its number.
    pub fn register(&mut self, number: u32) -> u32 {
        let answer = self.ask(&format!("p{number:x}"));
        u32::from_str_radix(&answer, 16).expect("eight digits").swap_bytes()
    }

    /// The next whole packet of the debugger.
    pub fn answer(&mut self) -> Option<String> {
        self.received.extend(self.debugger.take_output());
        let start = self.received.iter().position(|byte| *byte == b'$')?;
        assert!(self.received[..start].iter().all(|byte| *byte == b'+'), "{:?}", self.received);
        let length = self.received[start..].iter().position(|byte| *byte == b'#')?;
        let body = self.received[start + 1..start + length].to_vec();
        let sum = self.received.get(start + length + 1..start + length + 3)?;
        let expected = packet(&body);
        assert_eq!(sum, &expected[expected.len() - 2..], "checksum");
        self.received.drain(..start + length + 3);
        Some(String::from_utf8(unpacked(&body)).expect("text"))
    }
}

/// A body in its frame.
pub fn packet(body: &[u8]) -> Vec<u8> {
    let sum = body.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    [b"$", body, format!("#{sum:02x}").as_bytes()].concat()
}

/// Without run-length encoding: `0*` and a character stand for many zeros.
fn unpacked(body: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::new();
    let mut bytes = body.iter();
    while let Some(byte) = bytes.next() {
        match (*byte, out.last().copied()) {
            (b'*', Some(last)) => {
                let count = bytes.next().expect("a count") - 29;
                out.extend(std::iter::repeat_n(last, usize::from(count)));
            }
            (b'}', _) => out.push(bytes.next().expect("an escaped byte") ^ 0x20),
            (byte, _) => out.push(byte),
        }
    }
    out
}

fn text(digits: &str) -> String {
    let bytes = digits.as_bytes().chunks(2).map(|pair| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("digits")
    });
    String::from_utf8(bytes.collect()).expect("text")
}
