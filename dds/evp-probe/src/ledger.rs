// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What was done with which cipher context, and what all of it adds up to.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What a message's calls were for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Encrypted.
    Encrypt,
    /// Decrypted.
    Decrypt,
    /// A tag was made, and nothing encrypted: GMAC.
    Sign,
    /// A tag was checked, and nothing decrypted.
    Verify,
}

impl Operation {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
            Self::Sign => "sign",
            Self::Verify => "verify",
        }
    }
}

/// A message under way, from its context's first initialisation until it is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// The address to which the first initialisation returned.
    pub caller: usize,
    /// Whether it is encrypted or signed.
    pub is_outgoing: bool,
    /// Encrypted or decrypted.
    pub bytes: u64,
    /// Authenticated alone.
    pub associated_bytes: u64,
    /// Initialising: context and key.
    pub setup_ns: u64,
    /// All the rest.
    pub data_ns: u64,
}

impl Message {
    /// One that has just begun.
    pub const fn new(caller: usize, is_outgoing: bool) -> Self {
        Self { caller, is_outgoing, bytes: 0, associated_bytes: 0, setup_ns: 0, data_ns: 0 }
    }

    const fn operation(&self) -> Operation {
        match (self.is_outgoing, self.bytes > 0 || self.associated_bytes == 0) {
            (true, true) => Operation::Encrypt,
            (false, true) => Operation::Decrypt,
            (true, false) => Operation::Sign,
            (false, false) => Operation::Verify,
        }
    }
}

/// Messages that one call site has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// How many.
    pub calls: u64,
    /// How many were refused: their tag was wrong.
    pub refused: u64,
    /// Encrypted or decrypted.
    pub bytes: u64,
    /// Authenticated alone.
    pub associated_bytes: u64,
    /// Initialising.
    pub setup_ns: u64,
    /// All the rest.
    pub data_ns: u64,
}

/// All call sites.
#[derive(Debug, Default)]
pub struct Ledger {
    totals: BTreeMap<(usize, Operation), Totals>,
    /// Who is at an address, asked when it first calls: a plugin may be gone when all is written.
    names: BTreeMap<usize, String>,
}

impl Ledger {
    /// None yet.
    pub const fn new() -> Self {
        Self { totals: BTreeMap::new(), names: BTreeMap::new() }
    }

    /// A message is finished; `name` says who is at an address.
    pub fn add(&mut self, message: &Message, is_refused: bool, name: impl Fn(usize) -> String) {
        let caller = message.caller;
        self.names.entry(caller).or_insert_with(|| name(caller));
        let totals = self.totals.entry((caller, message.operation())).or_default();
        totals.calls += 1;
        totals.refused += u64::from(is_refused);
        totals.bytes += message.bytes;
        totals.associated_bytes += message.associated_bytes;
        totals.setup_ns += message.setup_ns;
        totals.data_ns += message.data_ns;
    }

    /// A line of JSON for each call site and operation. `probe_ns` is what the probe itself adds to
    /// each message.
    pub fn lines(&self, process: u32, probe_ns: u64) -> String {
        // Two addresses in one function are one site.
        let mut sites: BTreeMap<(&str, Operation), Totals> = BTreeMap::new();
        for ((caller, operation), of_caller) in &self.totals {
            let name = self.names.get(caller).map_or("", String::as_str);
            let totals = sites.entry((name, *operation)).or_default();
            totals.calls += of_caller.calls;
            totals.refused += of_caller.refused;
            totals.bytes += of_caller.bytes;
            totals.associated_bytes += of_caller.associated_bytes;
            totals.setup_ns += of_caller.setup_ns;
            totals.data_ns += of_caller.data_ns;
        }
        // A program without any such call says so with a line of its own.
        let mut lines = format!("{{\"process\":{process},\"probe_ns\":{probe_ns}}}\n");
        for ((site, operation), totals) in &sites {
            let Totals { calls, refused, bytes, associated_bytes, setup_ns, data_ns } = totals;
            let (site, operation) = (escaped(site), operation.name());
            // Writing to a string does not fail.
            let _ = writeln!(
                lines,
                "{{\"process\":{process},\"site\":\"{site}\",\"operation\":\"{operation}\",\
                 \"calls\":{calls},\"refused\":{refused},\"bytes\":{bytes},\
                 \"associated_bytes\":{associated_bytes},\"setup_ns\":{setup_ns},\
                 \"data_ns\":{data_ns}}}"
            );
        }
        lines
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(is_outgoing: bool, bytes: u64, associated_bytes: u64) -> Message {
        Message {
            bytes,
            associated_bytes,
            setup_ns: 10,
            data_ns: 5,
            ..Message::new(7, is_outgoing)
        }
    }

    #[test]
    fn what_has_only_associated_data_is_signed_or_verified() {
        assert_eq!(message(true, 1, 20).operation(), Operation::Encrypt);
        assert_eq!(message(true, 0, 20).operation(), Operation::Sign);
        assert_eq!(message(false, 1, 0).operation(), Operation::Decrypt);
        assert_eq!(message(false, 0, 1).operation(), Operation::Verify);
        assert_eq!(message(true, 0, 0).operation(), Operation::Encrypt, "an empty message");
    }

    #[test]
    fn two_addresses_of_one_function_are_one_line() {
        let mut ledger = Ledger::new();
        let name = |_| "say \"x\"\n".to_owned();
        ledger.add(&message(true, 16, 0), false, name);
        ledger.add(&Message { caller: 8, ..message(true, 32, 0) }, false, name);
        ledger.add(&message(false, 3, 0), true, name);
        let lines = ledger.lines(42, 90);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(
            lines,
            [
                r#"{"process":42,"probe_ns":90}"#,
                "{\"process\":42,\"site\":\"say \\\"x\\\"?\",\"operation\":\"encrypt\",\
                 \"calls\":2,\"refused\":0,\"bytes\":48,\"associated_bytes\":0,\"setup_ns\":20,\
                 \"data_ns\":10}",
                "{\"process\":42,\"site\":\"say \\\"x\\\"?\",\"operation\":\"decrypt\",\
                 \"calls\":1,\"refused\":1,\"bytes\":3,\"associated_bytes\":0,\"setup_ns\":10,\
                 \"data_ns\":5}",
            ]
        );
    }
}
