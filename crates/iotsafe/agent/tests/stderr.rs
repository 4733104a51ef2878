// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program itself, started by one that does not read what it says.

use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_warifu-agent");
const PATIENCE: Duration = Duration::from_secs(20);

/// Ended when this is dropped, whatever the test finds.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Started {
    fn end(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "it has not ended");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn closed_stderr() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut agent = Started(
        Command::new(PROGRAM)
            .args(["start", "--card"])
            .arg(format!("unix:{}", folder.path().join("no-card.sock").display()))
            .arg("--socket")
            .arg(&path)
            .stderr(Stdio::from(writer))
            .spawn()
            .unwrap(),
    );
    let end = Instant::now() + PATIENCE;
    while UnixStream::connect(&path).is_err() {
        assert_eq!(agent.0.try_wait().unwrap(), None, "it has ended");
        assert!(Instant::now() < end, "it does not listen");
        thread::sleep(Duration::from_millis(20));
    }
    let ask = |verb: &str| {
        let args = [verb, "--socket"];
        Command::new(PROGRAM).args(args).arg(&path).stdout(Stdio::null()).status().unwrap()
    };
    assert!(ask("status").success());
    assert!(ask("stop").success());
    assert!(agent.end().success());
}
