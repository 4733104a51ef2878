// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long the ciphers of DDS Security take: those of Warifu's plugin with a key that is set up
//! already, and OpenSSL's AES-GCM as Cyclone's own plugin calls it, with a context and a key for
//! each message.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use openssl::cipher::Cipher as Evp;
use openssl::cipher_ctx::CipherCtx;
use serde::{Deserialize, Serialize};
use warifu_dds_crypto::algorithm::{Aead, TAG_BYTES};
use warifu_dds_crypto::cipher::Cipher;

use crate::error::BenchError;
use crate::p256;

/// Longest message that may be asked for, B.
const MOST_BYTES: u32 = 1 << 20;
/// Most repetitions.
const MOST_READINGS: u32 = 100_000;
/// A reading takes about so long, so that the clock's own time is a thousandth.
const READING: Duration = Duration::from_micros(50);

/// What is to be timed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Readings of each call and length.
    pub readings: u32,
    /// Lengths of messages, B.
    pub lengths: Vec<u32>,
}

/// What was timed.
#[derive(Debug, Serialize)]
pub struct Report {
    /// OpenSSL's version.
    pub openssl: &'static str,
    /// A row for each call and length.
    pub calls: Vec<Row>,
    /// What authentication computes, by a primitive's name: median of a call, ns.
    pub authentication: BTreeMap<&'static str, f64>,
}

/// Calls of one kind.
#[derive(Debug, Serialize)]
pub struct Row {
    /// `seal`, `open` or `mac`.
    pub operation: &'static str,
    /// The AEAD, by its name in studies.
    pub aead: &'static str,
    /// Whether the key had been set up before.
    pub keyed: bool,
    /// Of the message, B.
    pub bytes: u32,
    /// Median of a call, one after the other, ns.
    pub ns: f64,
}

impl Config {
    /// Reads it; the error names the key.
    pub fn parse(text: &str) -> Result<Config, BenchError> {
        let config: Config =
            serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text))
                .map_err(|error| {
                    BenchError::Config(format!("{}: {}", error.path(), error.inner()))
                })?;
        let wrong = |message: String| Err(BenchError::Config(message));
        if !(1..=MOST_READINGS).contains(&config.readings) {
            let readings = config.readings;
            return wrong(format!("readings is {readings}: expected 1 to {MOST_READINGS}"));
        }
        if config.lengths.is_empty() || config.lengths.iter().any(|&bytes| bytes > MOST_BYTES) {
            return wrong(format!("lengths: expected at least one, each up to {MOST_BYTES}"));
        }
        Ok(config)
    }
}

/// Times all of them.
pub fn run(config: &Config) -> Result<Report, BenchError> {
    let mut calls = Vec::new();
    for aead in Aead::ALL {
        for &bytes in &config.lengths {
            for (operation, mut call) in keyed(aead, bytes as usize)? {
                calls.push(config.row((operation, aead, true), bytes, &mut *call)?);
            }
            // What `open` copies anew for each call is no part of it.
            let opened = calls.iter_mut().rev().find(|row| row.operation == "open");
            if let Some(row) = opened {
                row.ns = (row.ns - config.copy_ns(bytes as usize)?).max(0.0);
            }
            for (operation, mut call) in with_set_up(aead, bytes as usize)? {
                calls.push(config.row((operation, aead, false), bytes, &mut *call)?);
            }
        }
    }
    let mut authentication = BTreeMap::new();
    let of_p256 = p256::calls().map_err(|error| BenchError::Failed(format!("P-256: {error}")))?;
    for (name, mut call) in of_p256 {
        let ns = config.time(&mut *call);
        let ns = ns.ok_or_else(|| BenchError::Failed(format!("{name} failed")))?;
        authentication.insert(name, ns);
    }
    Ok(Report { openssl: openssl::version::version(), calls, authentication })
}

impl Config {
    fn row(
        &self,
        (operation, aead, keyed): (&'static str, Aead, bool),
        bytes: u32,
        call: &mut dyn FnMut() -> Option<()>,
    ) -> Result<Row, BenchError> {
        let ns = self.time(call).ok_or_else(|| {
            BenchError::Failed(format!("{operation} of {bytes} B with {} failed", aead.name()))
        })?;
        Ok(Row { operation, aead: aead.name(), keyed, bytes, ns })
    }

    /// What a copy of so many bytes takes.
    fn copy_ns(&self, bytes: usize) -> Result<f64, BenchError> {
        let (from, mut to) = (vec![5_u8; bytes], vec![0; bytes]);
        let mut copy = || {
            to.copy_from_slice(black_box(&from));
            black_box(&mut to);
            Some(())
        };
        self.time(&mut copy).ok_or_else(|| BenchError::Failed("a copy failed".into()))
    }

    fn time(&self, call: &mut dyn FnMut() -> Option<()>) -> Option<f64> {
        call()?;
        let begun = Instant::now();
        call()?;
        let one = begun.elapsed().as_nanos().max(1);
        let calls = (READING.as_nanos() / one).clamp(1, 10_000) as u32;
        let mut readings = Vec::with_capacity(self.readings as usize);
        for _ in 0..self.readings {
            let begun = Instant::now();
            for _ in 0..calls {
                call()?;
            }
            readings.push(begun.elapsed().as_nanos() as f64 / f64::from(calls));
        }
        Some(median(readings))
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// Does it once; nothing where it fails.
pub(crate) type Call = Box<dyn FnMut() -> Option<()>>;

/// The plugin's own ciphers. Nothing is sent: a nonce may come twice.
fn keyed(aead: Aead, bytes: usize) -> Result<Vec<(&'static str, Call)>, BenchError> {
    let cipher = || {
        Cipher::new(aead, &vec![3; aead.key_bytes()])
            .ok_or_else(|| BenchError::Failed(format!("{} has no key", aead.name())))
    };
    let nonce = vec![7; aead.nonce_bytes()];
    let (sealer, opener, signer) = (cipher()?, cipher()?, cipher()?);
    let mut sealed = vec![5; bytes];
    let tag = sealer
        .seal(&nonce, &[], &mut sealed)
        .ok_or_else(|| BenchError::Failed(format!("{} seals nothing", aead.name())))?;
    let (mut message, plain) = (vec![5; bytes], vec![5; bytes]);
    let (for_seal, for_mac) = (nonce.clone(), nonce.clone());
    let mut scratch = sealed.clone();
    Ok(vec![
        (
            "seal",
            Box::new(move || {
                black_box(sealer.seal(&for_seal, &[], black_box(&mut message))?);
                Some(())
            }),
        ),
        (
            "open",
            Box::new(move || {
                // It is decrypted in place; `run` takes the copy's time away.
                scratch.copy_from_slice(&sealed);
                opener.open(&nonce, &[], black_box(&mut scratch), &tag).ok()
            }),
        ),
        (
            "mac",
            Box::new(move || {
                black_box(signer.sign(&for_mac, black_box(&plain))?);
                Some(())
            }),
        ),
    ])
}

/// OpenSSL's, as `crypto_cipher_encrypt_data` and `crypto_cipher_decrypt_data` of Cyclone DDS
/// 0.10.2 call it (src/security/builtin_plugins/cryptographic/src/crypto_cipher.c); none of those
/// that it does not have.
fn with_set_up(aead: Aead, bytes: usize) -> Result<Vec<(&'static str, Call)>, BenchError> {
    let evp = match aead {
        Aead::Aes128Gcm => Evp::aes_128_gcm(),
        Aead::Aes256Gcm => Evp::aes_256_gcm(),
        _ => return Ok(Vec::new()),
    };
    let key = vec![3; aead.key_bytes()];
    let nonce = vec![7; aead.nonce_bytes()];
    let plain = vec![5; bytes];
    let mut sealed = vec![0; bytes];
    let tag = seal(evp, (&key, &nonce), &plain, Some(&mut sealed))
        .map_err(|error| BenchError::Failed(format!("OpenSSL seals nothing: {error}")))?;
    let (of_seal, of_mac) = ((key.clone(), nonce.clone()), (key.clone(), nonce.clone()));
    let (message, mut out, mut opened) = (plain.clone(), vec![0; bytes], vec![0; bytes]);
    Ok(vec![
        (
            "seal",
            Box::new(move || {
                let (key, nonce) = &of_seal;
                seal(evp, (key, nonce), black_box(&message), Some(&mut out)).ok().map(drop)
            }),
        ),
        ("open", Box::new(move || open(evp, (&key, &nonce), &sealed, &tag, &mut opened).ok())),
        (
            "mac",
            Box::new(move || {
                let (key, nonce) = &of_mac;
                seal(evp, (key, nonce), black_box(&plain), None).ok().map(drop)
            }),
        ),
    ])
}

type EvpRef = openssl::cipher::CipherRef;
type Openssl<T> = Result<T, openssl::error::ErrorStack>;

/// Encrypts into `out`, or signs alone.
fn seal(
    evp: &EvpRef,
    (key, nonce): (&[u8], &[u8]),
    message: &[u8],
    out: Option<&mut [u8]>,
) -> Openssl<[u8; TAG_BYTES]> {
    let mut context = CipherCtx::new()?;
    context.encrypt_init(Some(evp), Some(key), Some(nonce))?;
    context.cipher_update(message, out)?;
    context.cipher_final(&mut [0; TAG_BYTES])?;
    let mut tag = [0; TAG_BYTES];
    context.tag(&mut tag)?;
    Ok(tag)
}

fn open(
    evp: &EvpRef,
    (key, nonce): (&[u8], &[u8]),
    sealed: &[u8],
    tag: &[u8],
    out: &mut [u8],
) -> Openssl<()> {
    let mut context = CipherCtx::new()?;
    context.decrypt_init(Some(evp), Some(key), Some(nonce))?;
    context.cipher_update(black_box(sealed), Some(out))?;
    context.set_tag(tag)?;
    context.cipher_final(&mut [0; TAG_BYTES]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_timed_at_every_length() {
        let text = r#"{"readings": 1, "lengths": [16, 300]}"#;
        let report = run(&Config::parse(text).unwrap()).unwrap();
        // Seven AEADs keyed, two with their set-up, three operations, two lengths.
        assert_eq!(report.calls.len(), (7 + 2) * 3 * 2);
        assert_eq!(report.authentication.len(), 4);
        assert!(report.authentication.values().all(|&ns| ns > 0.0), "{report:?}");
        for row in &report.calls {
            // Of `open` a copy's time is taken away, which one reading may find too long.
            assert!(row.ns > 0.0 || row.operation == "open", "{row:?}");
        }
    }

    /// What is opened is authentic, so that its whole work is timed.
    #[test]
    fn a_wrong_tag_is_no_timing() {
        let evp = Evp::aes_256_gcm();
        let (key, nonce) = ([3; 32], [7; 12]);
        let mut sealed = [0; 20];
        let mut tag = seal(evp, (&key, &nonce), &[5; 20], Some(&mut sealed)).unwrap();
        assert!(open(evp, (&key, &nonce), &sealed, &tag, &mut [0; 20]).is_ok());
        tag[0] ^= 1;
        assert!(open(evp, (&key, &nonce), &sealed, &tag, &mut [0; 20]).is_err());
    }

    #[test]
    fn wrong_configurations_name_their_key() {
        for (text, expected) in [
            (r#"{"readings": 0, "lengths": [1]}"#, "readings"),
            (r#"{"readings": 1, "lengths": []}"#, "lengths"),
            (r#"{"readings": 1, "lengths": [9999999]}"#, "lengths"),
            (r#"{"readings": "x"}"#, "readings"),
            (r#"{"warm": 1}"#, "warm"),
        ] {
            let error = Config::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
