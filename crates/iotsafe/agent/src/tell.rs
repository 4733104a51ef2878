// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The agent's words to the person who started it.

use std::fmt::Display;
use std::io::{self, Write};

/// One line on stderr. Where nobody reads that any more, as behind `2>&1 | head -1`, the agent goes
/// on without; `eprintln!` would panic there.
pub fn tell(text: impl Display) {
    let _ = writeln!(io::stderr(), "warifu-agent: {text}"); // there is nowhere to say that it failed
}
