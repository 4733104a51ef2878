// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program: JSON lines in and out, and nothing left behind however it ends.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Ends, numbered, run_tests, trial, until};
use serde_json::Value;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use warifu_link::{LinkConfig, Report};

/// The program, killed when dropped.
struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(ends: &Ends, link: LinkConfig) -> Program {
        let mut child = command().args(["--config", "-"]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // On several lines: the first value on stdin is the configuration, however it is laid out.
        serde_json::to_writer_pretty(&mut stdin, &ends.config(link)).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut program = Program { child, stdin: Some(stdin), lines };
        program.say("");
        let ready = program.event();
        assert_eq!(ready["event"], "ready");
        assert!(ready["scheduler"]["fifo"].is_boolean() && ready["kernel"].is_string());
        program
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn event(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Reads the last report and the exit code.
    fn ended(&mut self) -> (Report, Option<i32>) {
        let last = self.event();
        assert_eq!(last["event"], "stopped");
        assert!(self.lines.next().is_none(), "nothing after the last report");
        (serde_json::from_value(last).unwrap(), self.child.wait().unwrap().code())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warifu-link"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn control_lines_valid_and_invalid() {
    let ends = Ends::new();
    let mut program = Program::start(&ends, LinkConfig::default());
    let (a, b) = ends.udp();
    assert_eq!(numbered(&a, &b, 3, 3), [0, 1, 2]);
    program.say(r#"{"command":"report"}"#);
    let report = program.event();
    assert_eq!((&report["event"], &report["a_to_b"]["delivered"]), (&"report".into(), &3.into()));
    for wrong in
        [r#"{"command":"sett"}"#, "nonsense", r#"{"command":"set","link":{"queue_bytes":0}}"#]
    {
        program.say(wrong);
        let error = program.event();
        assert_eq!(error["event"], "error");
        assert!(error["message"].as_str().unwrap().contains("expected"), "{error}");
    }
    program.say(
        r#"{"command":"set","link":{"loss":{"kind":"independent","probability":1}},"seed":9}"#,
    );
    assert_eq!(program.event()["event"], "set");
    assert!(numbered(&a, &b, 3, 0).is_empty());
    program.say(r#"{"command":"stop"}"#);
    let (report, code) = program.ended();
    assert_eq!((report.a_to_b.counters.dropped_by_loss, report.seed, code), (3, 9, Some(0)));
}

fn end_of_stdin_and_signals_stop_the_link() {
    use rustix::process::Signal;
    let ends = Ends::new();
    for signal in [None, Some(Signal::TERM), Some(Signal::INT), Some(Signal::HUP)] {
        let mut program = Program::start(&ends, LinkConfig::default());
        match signal {
            None => drop(program.stdin.take()),
            Some(signal) => program.signal(signal),
        }
        assert_eq!(program.ended().1, Some(0));
        assert_eq!(Ends::devices(&ends.a), ["lo"]);
    }
}

fn kill_leaves_no_device() {
    let ends = Ends::new();
    let mut program = Program::start(&ends, LinkConfig::default());
    assert_eq!(Ends::devices(&ends.a), ["lo", "tun0"]);
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    assert_eq!(Ends::devices(&ends.a), ["lo"]);
    assert_eq!(Ends::devices(&ends.b), ["lo"]);
}

fn death_of_parent_stops_the_link() {
    let ends = Ends::new();
    let config = serde_json::to_string(&ends.config(LinkConfig::default())).unwrap();
    // The shell starts the program, waits until it is ready, and dies by SIGKILL while the
    // program's stdin stays open.
    let script = r#""$0" --config "$1" --ignore-stdin > "$2" &
        for _ in $(seq 400); do grep -q ready "$2" && kill -9 $$; sleep 0.05; done"#;
    let log = std::env::temp_dir().join(format!("warifu-link-{}.log", std::process::id()));
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_warifu-link"), &config]).arg(&log);
    assert!(!shell.status().unwrap().success(), "the program was not ready within 20 s");
    until("the devices' end", || Ends::devices(&ends.a) == ["lo"]);
    // The last report follows the devices' end.
    let stopped = |text: &str| {
        text.lines().any(|line| line.starts_with(r#"{"event":"stopped""#) && line.ends_with('}'))
    };
    until("the last report", || stopped(&std::fs::read_to_string(&log).unwrap()));
    std::fs::remove_file(log).unwrap();
}

fn exit_code_2_for_configuration_and_1_for_failed_start() {
    let output =
        command().args(["--config", r#"{"name_a":"a","name_b":"b","mtu":1}"#]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "warifu-link: --config: mtu is 1: expected 576 to 65535 bytes\n"
    );
    let output =
        command().args(["--name-a", "warifu-no-a", "--name-b", "warifu-no-b"]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true));
    assert!(String::from_utf8(output.stderr).unwrap().contains("ip netns add warifu-no-a"));
}

/// Whether it keeps them awake depends on the machine and on rights; that it ends and leaves no
/// group of the scheduler does not.
fn awake_says_what_it_does_and_leaves_nothing() {
    use rustix::process::Signal;
    for signal in [None, Some(Signal::TERM), Some(Signal::INT), Some(Signal::KILL)] {
        let mut child = command().arg("awake").spawn().unwrap();
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut program = Program { child, stdin, lines };
        let said = program.event();
        let group = format!("warifu-awake-{}", program.child.id());
        let groups = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"].map(std::path::Path::new);
        let is_there = || groups.iter().any(|groups| groups.join(&group).exists());
        if said["event"] == "not_kept" {
            assert!(said["why"].is_string(), "{said}");
            assert_eq!(program.child.wait().unwrap().code(), Some(0));
        } else {
            assert_eq!(said["event"], "ready");
            assert!(!said["processors"].as_array().unwrap().is_empty(), "{said}");
            match signal {
                None => drop(program.stdin.take()),
                Some(signal) => program.signal(signal),
            }
            let code = program.child.wait().unwrap().code();
            assert_eq!(code, if signal == Some(Signal::KILL) { None } else { Some(0) });
        }
        if signal == Some(Signal::KILL) {
            // The next one removes it.
            assert_eq!(command().arg("awake").output().unwrap().status.code(), Some(0));
        }
        assert!(!is_there());
    }
    let check = command().args(["awake", "--check"]).output().unwrap();
    let said: Value = serde_json::from_slice(&check.stdout).unwrap();
    assert!(said["virtual_machine"].is_boolean(), "{said}");
}

fn main() -> ExitCode {
    run_tests(vec![
        trial!(control_lines_valid_and_invalid, needs_root: true),
        trial!(end_of_stdin_and_signals_stop_the_link, needs_root: true),
        trial!(kill_leaves_no_device, needs_root: true),
        trial!(death_of_parent_stops_the_link, needs_root: true),
        trial!(exit_code_2_for_configuration_and_1_for_failed_start, needs_root: false),
        trial!(awake_says_what_it_does_and_leaves_nothing, needs_root: false),
    ])
}
