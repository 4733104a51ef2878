// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program as it is run: exit codes, and what goes to which stream.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const VARIANT: &str = r#"{"tls": "1.3", "session": "full", "authentication": "mutual",
    "group": "secp256r1", "certificate": "ecdsa_secp256r1", "chain_length": 1,
    "cipher_suite": "TLS_AES_128_GCM_SHA256"}"#;

fn feed(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_warifu-calibrate-bench"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A child that refuses its arguments reads nothing.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn help_and_version() {
    let help = feed(&["--help"], "");
    assert_eq!(help.status.code(), Some(0));
    assert!(words(&help.stdout).contains("usage: "));
    let version = feed(&["--version"], "");
    assert_eq!(version.status.code(), Some(0));
    assert!(words(&version.stdout).contains("OpenSSL 3."));
}

#[test]
fn unknown_arguments_print_help_and_exit_2() {
    for arguments in [&[][..], &["tsl"], &["tls", "--one"]] {
        let refused = feed(arguments, "{}");
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(words(&refused.stderr).contains("usage: ") && refused.stdout.is_empty());
    }
}

#[test]
fn tls_reports_every_message() {
    let config = format!(
        r#"{{"variants": [{VARIANT}], "warm": 2, "cold": 1, "gap_ms": 1, "primitives": 1}}"#
    );
    let done = feed(&["tls"], &config);
    assert_eq!(done.status.code(), Some(0), "{}", words(&done.stderr));
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["stopped"], false);
    let rows = report["messages"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["message"] == "CertificateVerify" && row["sent"] == true));
    let operations = report["primitives"].as_array().unwrap();
    for operation in ["sign", "verify", "keygen", "derive", "seal", "open"] {
        assert!(operations.iter().any(|row| row["operation"] == operation), "{operation}");
    }
}

#[test]
fn configuration_mistakes_print_one_line_and_exit_2() {
    for bench in ["tls", "token"] {
        for input in ["", "{", "[]", r#"{"colour": "red"}"#] {
            let refused = feed(&[bench], input);
            assert_eq!(refused.status.code(), Some(2), "{bench} {input}");
            assert!(refused.stdout.is_empty());
            assert_eq!(words(&refused.stderr).lines().count(), 1, "{}", words(&refused.stderr));
        }
    }
}
