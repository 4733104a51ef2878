// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lines for the person who started a program.

use std::fmt::Display;
use std::io::{self, Write};

use crate::printable::printable;

/// Writes lines to stderr, each after the program's name.
///
/// Not `eprintln!`, which panics once nobody reads stderr any more, as behind `2>&1 | head -1`.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    program: &'static str,
}

impl Log {
    /// The log of a program.
    #[must_use]
    pub const fn new(program: &'static str) -> Log {
        Log { program }
    }

    /// Writes `PROGRAM: MESSAGE` and a line break in one piece. The message may quote a modem, a
    /// card or a caller: it is made [`printable`].
    pub fn line(self, message: impl Display) {
        let text = format!("{}: {}\n", self.program, printable(&message.to_string()));
        // A closed stderr leaves nowhere to report that writing failed.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}
