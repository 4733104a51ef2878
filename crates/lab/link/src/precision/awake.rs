// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processors kept awake as in the lab, by a process of its own: an idle group of the scheduler
//! holds whole processes, and the link is not to be in it.

use serde::Deserialize;
use std::io::{self, BufRead, BufReader};
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
        command.arg("awake");
        KeptAwake::by(command).map_err(failed)
    }

    fn by(mut command: Command) -> io::Result<KeptAwake> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut kept = KeptAwake { child: command.spawn()?, processors: Vec::new() };
        let mut line = String::new();
        if let Some(stdout) = kept.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        if line.is_empty() {
            // It has said why on stderr, which is this program's.
            let status = kept.child.wait()?;
            return Err(io::Error::other(format!("`warifu-link awake` ended with {status}")));
        }
        match serde_json::from_str(&line)? {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn by(script: &str) -> io::Result<KeptAwake> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        KeptAwake::by(command)
    }

    #[test]
    fn program_that_fails_is_told_by_its_exit_status() {
        let error = by("exit 3").err().unwrap().to_string();
        assert_eq!(error, "`warifu-link awake` ended with exit status: 3");
    }

    #[test]
    fn processors_are_those_that_it_says() {
        let kept = by(r#"echo '{"event":"ready","processors":[0,2]}'; cat"#).unwrap();
        assert_eq!(kept.processors(), [0, 2]);
        let kept = by(r#"echo '{"event":"not_kept","why":"a test"}'"#).unwrap();
        assert!(kept.processors().is_empty());
    }
}
