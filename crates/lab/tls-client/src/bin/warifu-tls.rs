// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes the lab's certificates, and shows a handshake's bytes.

use std::path::PathBuf;
use std::process::ExitCode;

use warifu_model::{CertificateType, Keyword};
use warifu_tls_client::{Error, Exchange, Pki, VERSION, Variant, record_exchange};

const HELP: &str = "\
warifu-tls: certificates for the lab, and the bytes of real handshakes

usage: warifu-tls pki --out FOLDER [--certificate ecdsa_secp256r1|rsa-2048] [--chain-length 1..3]
       warifu-tls record VARIANT.json

pki     makes a root and a chain for each end, keys readable by their owner only, and prints the
        certificates' sizes as JSON. The keys protect nothing: use them in the lab alone.
record  runs a variant (see warifu-tls-client --help) over memory and prints each message.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["pki", options @ ..] => pki(options),
        ["record", file] => show(file),
        ["--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        ["--version"] => {
            println!("warifu-tls {}, {}", VERSION, openssl::version::version());
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("warifu-tls: {error}");
            ExitCode::from(if matches!(error, Error::Config(_)) { 2 } else { 3 })
        }
    }
}

fn pki(options: &[&str]) -> Result<String, Error> {
    let mut out = None;
    let mut certificate = CertificateType::EcdsaSecp256r1;
    let mut chain_length = 1;
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        let value = rest
            .next()
            .ok_or_else(|| Error::Config(format!("{option} needs a value, see --help")))?;
        match *option {
            "--out" => out = Some(PathBuf::from(value)),
            "--certificate" => {
                certificate = CertificateType::from_word(value).map_err(|expected| {
                    Error::Config(format!("--certificate is {value}: {expected}"))
                })?;
            }
            "--chain-length" => {
                chain_length = value.parse().map_err(|_| {
                    Error::Config(format!("--chain-length is {value}: expected 1, 2 or 3"))
                })?;
            }
            other => return Err(Error::Config(format!("{other}: no such option, see --help"))),
        }
    }
    let out = out.ok_or_else(|| Error::Config("--out is missing: name a folder".into()))?;
    let pki = Pki::generate(certificate, chain_length)?;
    pki.write(&out)?;
    json(&pki.sizes()?)
}

fn show(file: &str) -> Result<String, Error> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| Error::File { path: file.into(), source })?;
    let variant: Variant =
        serde_json::from_str(&text).map_err(|error| Error::Config(format!("{file}: {error}")))?;
    variant.check()?;
    let pki = Pki::generate(variant.certificate, variant.chain_length)?;
    json(&record_exchange(&variant, &pki, &Exchange::default())?)
}

fn json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(value)
        .map_err(|error| Error::Tls(format!("the result cannot be written: {error}")))
}
