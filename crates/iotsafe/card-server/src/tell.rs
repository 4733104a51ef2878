// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server's words to the person who started it.

use std::fmt::Display;
use std::io::{self, Write};

/// One line on stderr. Not `eprintln`, which panics where nobody reads any more: a thread would end
/// with it, and the card with the thread.
pub fn tell(text: impl Display) {
    let _ = writeln!(io::stderr(), "warifu-card-server: {text}"); // there is nowhere to say that it failed
}
