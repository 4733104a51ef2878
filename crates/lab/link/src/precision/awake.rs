// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processors kept awake as in the lab, by a process of its own: an idle group of the scheduler
//! holds whole processes, and the link is not to be in it.

use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use warifu_link::LinkError;

/// `warifu-link awake`, ended when this is dropped.
pub struct KeptAwake {
    child: Child,
    processors: Vec<usize>,
}

/// What it says first.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Ready { processors: Vec<usize> },
    NotKept { why: String },
}

impl KeptAwake {
    /// Starts it; says on stderr why it does nothing on a virtual machine, if so.
    ///
    /// # Errors
    /// It could not be started, or failed.
    pub fn begin() -> Result<KeptAwake, LinkError> {
        let failed =
            |source| LinkError::Os { doing: "keeping processors awake".to_owned(), source };
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.arg("awake").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut kept =
            KeptAwake { child: command.spawn().map_err(failed)?, processors: Vec::new() };
        let mut line = String::new();
        if let Some(stdout) = kept.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
        }
        match serde_json::from_str(&line).map_err(|error| failed(error.into()))? {
            Event::Ready { processors } => kept.processors = processors,
            Event::NotKept { why } => eprintln!("processors are not kept awake: {why}"),
        }
        Ok(kept)
    }

    /// Those that are kept awake; none where they are left as they are.
    pub fn processors(&self) -> &[usize] {
        &self.processors
    }
}

impl Drop for KeptAwake {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
