// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stand-alone operations, so that a message's time can be taken apart: what a signature costs
//! is what another key store replaces.

use std::time::Duration;

use openssl::derive::Deriver;
use openssl::hash::MessageDigest;
use openssl::pkey::{Id, PKey, Private};
use openssl::rsa::Padding;
use openssl::sign::{RsaPssSaltlen, Signer, Verifier};
use openssl::symm::{Cipher, decrypt_aead, encrypt_aead};
use serde::Serialize;
use warifu_model::{CertificateType, Keyword};
use warifu_tls_client::Error;
use warifu_tls_client::pki::new_key;

use super::config::Config;
use super::reading::Reading;
use super::samples::{Temperature, mean, quantiles};

/// What a CertificateVerify signs: 64 spaces, a context string, a zero and a hash (RFC 8446
/// section 4.4.3).
const SIGNED_BYTES: usize = 64 + 33 + 1 + 32;
/// Records of these sizes are sealed and opened, B.
const RECORDS_BYTES: [usize; 3] = [256, 4_096, 16_384];
/// IV and tag of every AEAD in TLS (RFC 8446 section 5.3, RFC 5116).
const IV: [u8; 12] = [7; 12];
const TAG_BYTES: usize = 16;

/// A stand-alone operation with its times.
#[derive(Debug, Serialize)]
pub struct Primitive {
    /// `sign`, `verify`, `keygen`, `derive`, `seal`, `open`.
    pub operation: &'static str,
    /// The algorithm, by its name in studies.
    pub algorithm: &'static str,
    /// Bytes that it works on; 0 where only the operation counts.
    pub bytes: usize,
    /// Whether the processor had paused.
    pub temperature: Temperature,
    /// How many times.
    pub n: usize,
    /// Mean of the thread's processor time, ns.
    pub mean_cpu_ns: f64,
    /// Evenly spaced quantiles of it, ns.
    pub cpu_ns: Vec<u64>,
}

type Body = Box<dyn FnMut() -> Result<(), Error>>;

/// Times each operation `config.primitives` times warm, and a fourth as often cold.
pub(super) fn measure(config: &Config) -> Result<Vec<Primitive>, Error> {
    if config.primitives == 0 {
        return Ok(Vec::new());
    }
    let mut operations = signatures()?;
    operations.extend(groups()?);
    operations.extend(records());
    let mut results = Vec::new();
    for (operation, algorithm, bytes, mut body) in operations {
        for temperature in [Temperature::Warm, Temperature::Cold] {
            let (count, gap) = match temperature {
                Temperature::Warm => (config.primitives, Duration::ZERO),
                Temperature::Cold => {
                    (config.primitives.div_ceil(4), Duration::from_secs_f64(config.gap_ms / 1e3))
                }
            };
            let mut cpu = Vec::with_capacity(count as usize);
            for _ in 0..count {
                if !gap.is_zero() {
                    std::thread::sleep(gap);
                }
                let before = Reading::now();
                body()?;
                cpu.push(Reading::now().since(before).cpu_ns);
            }
            results.push(Primitive {
                operation,
                algorithm,
                bytes,
                temperature,
                n: cpu.len(),
                mean_cpu_ns: mean(&cpu),
                cpu_ns: quantiles(cpu),
            });
        }
    }
    Ok(results)
}

type Operation = (&'static str, &'static str, usize, Body);

fn signatures() -> Result<Vec<Operation>, Error> {
    let data = [0x20; SIGNED_BYTES];
    let mut operations: Vec<Operation> = Vec::new();
    for &kind in CertificateType::ALL {
        let key = new_key(kind)?;
        let signature = sign(&key, &data)?;
        let signer = key.clone();
        operations.push(("sign", kind.name(), 0, Box::new(move || sign(&signer, &data).map(drop))));
        operations.push((
            "verify",
            kind.name(),
            0,
            Box::new(move || {
                let mut verifier = Verifier::new(MessageDigest::sha256(), &key)?;
                if key.id() == Id::RSA {
                    verifier.set_rsa_padding(Padding::PKCS1_PSS)?;
                    verifier.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH)?;
                }
                match verifier.verify_oneshot(&signature, &data)? {
                    true => Ok(()),
                    false => Err(Error::Tls("a signature does not verify".into())),
                }
            }),
        ));
    }
    Ok(operations)
}

fn sign(key: &PKey<Private>, data: &[u8]) -> Result<Vec<u8>, Error> {
    let mut signer = Signer::new(MessageDigest::sha256(), key)?;
    if key.id() == Id::RSA {
        // rsa_pss_rsae_sha256 (RFC 8446 section 4.2.3).
        signer.set_rsa_padding(Padding::PKCS1_PSS)?;
        signer.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH)?;
    }
    Ok(signer.sign_oneshot_to_vec(data)?)
}

fn groups() -> Result<Vec<Operation>, Error> {
    let p256 = || new_key(CertificateType::EcdsaSecp256r1);
    let x25519 = || Ok::<_, Error>(PKey::generate_x25519()?);
    let derive = |own: &PKey<Private>, other: &PKey<Private>| -> Result<(), Error> {
        let mut deriver = Deriver::new(own)?;
        deriver.set_peer(other)?;
        deriver.derive_to_vec()?;
        Ok(())
    };
    let (a, b, c, d) = (p256()?, p256()?, x25519()?, x25519()?);
    Ok(vec![
        ("keygen", "secp256r1", 0, Box::new(move || p256().map(drop))),
        ("derive", "secp256r1", 0, Box::new(move || derive(&a, &b))),
        ("keygen", "x25519", 0, Box::new(move || x25519().map(drop))),
        ("derive", "x25519", 0, Box::new(move || derive(&c, &d))),
    ])
}

fn records() -> Vec<Operation> {
    let mut operations: Vec<Operation> = Vec::new();
    let ciphers = [
        ("AES_128_GCM", Cipher::aes_128_gcm(), 16),
        ("AES_256_GCM", Cipher::aes_256_gcm(), 32),
        ("CHACHA20_POLY1305", Cipher::chacha20_poly1305(), 32),
    ];
    for (name, cipher, key_bytes) in ciphers {
        for bytes in RECORDS_BYTES {
            let key = vec![3; key_bytes];
            let plain = vec![5; bytes];
            let mut tag = [0; TAG_BYTES];
            let sealed = encrypt_aead(cipher, &key, Some(&IV), &[], &plain, &mut tag);
            let opener = key.clone();
            operations.push((
                "seal",
                name,
                bytes,
                Box::new(move || {
                    let mut tag = [0; TAG_BYTES];
                    encrypt_aead(cipher, &key, Some(&IV), &[], &plain, &mut tag)?;
                    Ok(())
                }),
            ));
            if let Ok(sealed) = sealed {
                operations.push((
                    "open",
                    name,
                    bytes,
                    Box::new(move || {
                        decrypt_aead(cipher, &opener, Some(&IV), &[], &sealed, &tag)?;
                        Ok(())
                    }),
                ));
            }
        }
    }
    operations
}
