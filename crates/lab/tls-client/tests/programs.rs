// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two programs as they are run: exit codes, and what goes to which stream.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use common::{Manner, Server, stack_json, variant};
use serde_json::Value;
use warifu_model::{Authentication, Session, TlsVersion};

const TLS: &str = env!("CARGO_BIN_EXE_warifu-tls");
const CLIENT: &str = env!("CARGO_BIN_EXE_warifu-tls-client");

fn start(program: &str, input: &str) -> Child {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child
}

fn feed(program: &str, input: &str) -> Output {
    start(program, input).wait_with_output().unwrap()
}

fn call(arguments: &[&str]) -> Output {
    Command::new(TLS).args(arguments).output().unwrap()
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn variant_json(session: Session) -> String {
    serde_json::to_string(&variant(TlsVersion::Tls13, session, Authentication::Mutual)).unwrap()
}

/// A path that nothing has yet.
fn place(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("warifu-tls-{name}-{}", std::process::id()))
}

#[test]
fn help_and_version() {
    for program in [TLS, CLIENT] {
        let help = Command::new(program).arg("--help").output().unwrap();
        assert_eq!(help.status.code(), Some(0), "{program}");
        assert!(words(&help.stdout).contains("usage: "), "{program}");
        let version = Command::new(program).arg("--version").output().unwrap();
        assert!(words(&version.stdout).contains("OpenSSL 3."), "{program}");
    }
}

#[test]
fn pki_is_written_once_and_options_are_checked() {
    let folder = place("pki");
    let name = folder.to_str().unwrap();
    let made = call(&["pki", "--out", name, "--certificate", "rsa-2048", "--chain-length", "3"]);
    assert_eq!(made.status.code(), Some(0), "{}", words(&made.stderr));
    let sizes: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(sizes["certificate"], "rsa-2048");
    assert_eq!(sizes["server_chain_bytes"].as_array().unwrap().len(), 3);
    let again = call(&["pki", "--out", name]);
    assert_eq!(again.status.code(), Some(3));
    assert!(words(&again.stderr).contains("root.pem"), "{}", words(&again.stderr));
    std::fs::remove_dir_all(folder).unwrap();
    for (arguments, word) in [
        (&["pki"][..], "--out is missing"),
        (&["pki", "--out"], "--out needs a value"),
        (&["pki", "--out", "x", "--certificate", "dsa"], "--certificate is dsa: expected"),
        (&["pki", "--out", "x", "--chain-length", "4"], "chain_length is 4"),
        (&["pki", "--colour", "red"], "--colour: no such option"),
    ] {
        let refused = call(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(words(&refused.stderr).contains(word), "{arguments:?} {}", words(&refused.stderr));
        assert!(refused.stdout.is_empty());
    }
}

#[test]
fn record_prints_json() {
    let file = place("variant.json");
    std::fs::write(&file, variant_json(Session::PskDheKe)).unwrap();
    let recorded = call(&["record", file.to_str().unwrap()]);
    let recording: Value = serde_json::from_slice(&recorded.stdout).unwrap();
    assert_eq!(recording["resumed"], true);
    assert_eq!(recording["messages"][0]["name"], "ClientHello");
    assert_eq!(recording["messages"][0]["from"], "client");
    std::fs::write(&file, variant_json(Session::Ticket)).unwrap();
    let refused = call(&["record", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(words(&refused.stderr).contains("session is ticket"), "{}", words(&refused.stderr));
    std::fs::remove_file(file).unwrap();
}

#[test]
fn configuration_mistakes_print_one_line_and_exit_2() {
    for input in ["", "{", "[]", r#"{"colour": "red"}"#] {
        let refused = feed(CLIENT, input);
        assert_eq!(refused.status.code(), Some(2), "{input}");
        assert!(refused.stdout.is_empty());
        assert_eq!(words(&refused.stderr).lines().count(), 1, "{}", words(&refused.stderr));
    }
}

#[test]
fn interrupted_client_keeps_lines_and_exits_130() {
    let of = variant(TlsVersion::Tls13, Session::Full, Authentication::Server);
    let server = Server::start(Manner::Tls(of.clone()));
    let config = format!(
        r#"{{"stack": {}, "pki": {:?}, "address": "{}", "trials": 100000,
            "rate_per_second": 100, "timeout_s": 60}}"#,
        stack_json(&of),
        server.pki_folder(),
        server.address()
    );
    let mut child = start(CLIENT, &config);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    output.read_line(&mut text).unwrap();
    // SAFETY: a signal to a child that has not been waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    output.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert!(row.get("error").is_none(), "{row}");
    }
}

#[test]
fn missing_pki_names_the_file() {
    let config = format!(
        r#"{{"stack": {}, "pki": "/nowhere", "address": "127.0.0.1:1", "trials": 1,
            "rate_per_second": 1, "timeout_s": 1}}"#,
        stack_json(&variant(TlsVersion::Tls13, Session::Full, Authentication::Mutual))
    );
    let refused = feed(CLIENT, &config);
    assert_eq!(refused.status.code(), Some(3));
    assert!(words(&refused.stderr).contains("/nowhere/root.pem"), "{}", words(&refused.stderr));
}
