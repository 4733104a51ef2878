// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stand-alone operations, so that a message's time can be taken apart: what a signature costs
//! is what another key store replaces.

use std::time::Duration;

use openssl::hash::{Hasher, MessageDigest};
use openssl::pkey::{Id, PKey, Private};
use openssl::rsa::Padding;
use openssl::sign::{RsaPssSaltlen, Signer, Verifier};
use openssl::symm::{Cipher, decrypt_aead, encrypt_aead};
use openssl::x509::X509;
use serde::Serialize;
use warifu_model::{CertificateType, Group, Keyword};
use warifu_tls_client::pki::{Pki, new_key};
use warifu_tls_client::{Error, evp};

use super::config::Config;
use super::reading::Reading;
use super::samples::{Temperature, mean, quantiles};

/// What a CertificateVerify signs: 64 spaces, a context string, a zero and a hash (RFC 8446
/// section 4.4.3).
const SIGNED_BYTES: usize = 64 + 33 + 1 + 32;
/// Records of these sizes are sealed and opened, B.
const RECORDS_BYTES: [usize; 3] = [256, 4_096, 16_384];
/// Transcripts and keys of these sizes are hashed, B.
const HASHED_BYTES: [usize; 3] = [32, 512, 4_096];
/// Digests that TLS 1.2's PRF gives: no message takes more at once (RFC 5246 sections 6.3, 7.4.9
/// and 8.1).
const DERIVED_DIGESTS: [usize; 3] = [1, 2, 3];
/// A message of TLS 1.3 that derives keys makes 1 to 8 HKDFs one after another, 4 in the middle
/// (`profiles/recipes/openssl-3.toml`).
const HKDFS_IN_A_ROW: u32 = 4;
/// RFC 5246 section 8.1.
const MASTER_SECRET_BYTES: usize = 48;
/// IV and tag of every AEAD in TLS (RFC 8446 section 5.3, RFC 5116).
const IV: [u8; 12] = [7; 12];
const TAG_BYTES: usize = 16;

/// A stand-alone operation with its times.
#[derive(Debug, Serialize)]
pub struct Primitive {
    /// `sign`, `verify`, `keygen`, `derive`, `seal`, `open`, `hash`, `hmac`, `hkdf`, `prf`,
    /// `parse` or `random`.
    pub operation: &'static str,
    /// The algorithm, by its name in studies.
    pub algorithm: &'static str,
    /// Bytes that it works on; 0 where only the operation counts.
    pub bytes: usize,
    /// Calls that a time is of, one after another.
    pub calls: u32,
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

/// The operations, timed a little in each round of the messages, so that drift hits both alike.
pub(super) struct Primitives {
    operations: Vec<Timed>,
    wanted: u32,
    gap: Duration,
    done: u32,
}

struct Timed {
    operation: Operation,
    warm: Vec<u64>,
    cold: Vec<u64>,
}

/// Of so many warm samples one is followed by a cold one.
const WARM_FOR_A_COLD: u32 = 4;

impl Primitives {
    /// Sets up keys and messages.
    pub(super) fn new(config: &Config) -> Result<Primitives, Error> {
        let mut operations = Vec::new();
        if config.primitives > 0 {
            operations = signatures()?;
            operations.extend(groups()?);
            operations.extend(records());
            operations.extend(hashes()?);
            operations.extend(certificates()?);
        }
        let timed = |operation| Timed { operation, warm: Vec::new(), cold: Vec::new() };
        Ok(Primitives {
            operations: operations.into_iter().map(timed).collect(),
            wanted: config.primitives,
            gap: Duration::from_secs_f64(config.gap_ms / 1e3),
            done: 0,
        })
    }

    /// Times each operation until it has this share of the samples that are wanted. A signature
    /// comes after another operation, as in a handshake; all else after one call of its own.
    pub(super) fn reach(&mut self, round: u32, rounds: u32) -> Result<(), Error> {
        let until = u64::from(self.wanted) * u64::from(round) / u64::from(rounds.max(1));
        while u64::from(self.done) < until {
            for timed in &mut self.operations {
                // A message makes several calls of a hash or cipher one after another: the first
                // brings their code into the caches, which is the message's time, not a call's. A
                // signature is what another key store replaces: all of it is its time.
                if timed.operation.0 != "sign" {
                    timed.operation.3()?;
                }
                timed.warm.push(sample(&mut timed.operation)?);
            }
            if self.done.is_multiple_of(WARM_FOR_A_COLD) {
                for timed in &mut self.operations {
                    std::thread::sleep(self.gap);
                    timed.cold.push(sample(&mut timed.operation)?);
                }
            }
            self.done += 1;
        }
        Ok(())
    }

    /// What was timed.
    pub(super) fn results(self) -> Vec<Primitive> {
        let result = |timed: Timed| {
            let (operation, algorithm, bytes, _) = timed.operation;
            [(Temperature::Warm, timed.warm), (Temperature::Cold, timed.cold)]
                .into_iter()
                .filter(|(_, cpu)| !cpu.is_empty())
                .map(move |(temperature, cpu)| Primitive {
                    operation,
                    algorithm,
                    bytes,
                    calls: in_a_row(operation),
                    temperature,
                    n: cpu.len(),
                    mean_cpu_ns: mean(&cpu),
                    cpu_ns: quantiles(cpu),
                })
        };
        self.operations.into_iter().flat_map(result).collect()
    }
}

fn in_a_row(operation: &str) -> u32 {
    if operation == "hkdf" { HKDFS_IN_A_ROW } else { 1 }
}

fn sample((operation, _, _, body): &mut Operation) -> Result<u64, Error> {
    let before = Reading::now();
    for _ in 0..in_a_row(operation) {
        body()?;
    }
    Ok(Reading::now().since(before).cpu_ns)
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
    let mut operations: Vec<Operation> = Vec::new();
    for &group in Group::ALL {
        let (own, _) = evp::key_share(group)?;
        let (_, share) = evp::key_share(group)?;
        let fresh = move || -> Result<(), Error> {
            evp::key_share(group)?;
            Ok(())
        };
        let agree = move || -> Result<(), Error> {
            evp::derive(&own, &share)?;
            Ok(())
        };
        operations.push(("keygen", group.name(), 0, Box::new(fresh)));
        operations.push(("derive", group.name(), 0, Box::new(agree)));
    }
    Ok(operations)
}

fn hashes() -> Result<Vec<Operation>, Error> {
    let mut operations: Vec<Operation> = Vec::new();
    let kinds = [
        ("sha-256", MessageDigest::sha256(), c"SHA256"),
        ("sha-384", MessageDigest::sha384(), c"SHA384"),
    ];
    for (name, digest, openssl_name) in kinds {
        for bytes in HASHED_BYTES {
            let data = vec![5; bytes];
            let key = vec![3; digest.size()];
            let hashed = data.clone();
            let digested = move || -> Result<(), Error> {
                let mut hasher = Hasher::new(digest)?;
                hasher.update(&hashed)?;
                hasher.finish()?;
                Ok(())
            };
            let authenticated = move || -> Result<(), Error> {
                evp::hmac(openssl_name, &key, &data)?;
                Ok(())
            };
            operations.push(("hash", name, bytes, Box::new(digested)));
            operations.push(("hmac", name, bytes, Box::new(authenticated)));
        }
        let secret = vec![3; digest.size()];
        let derived = move || -> Result<(), Error> {
            evp::expand_label(openssl_name, &secret, &secret)?;
            Ok(())
        };
        operations.push(("hkdf", name, 0, Box::new(derived)));
        for digests in DERIVED_DIGESTS {
            let bytes = digests * digest.size();
            let secret = vec![3; MASTER_SECRET_BYTES];
            let derived = move || -> Result<(), Error> {
                evp::prf(openssl_name, &secret, b"key expansion", &[7; 64], bytes)?;
                Ok(())
            };
            operations.push(("prf", name, bytes, Box::new(derived)));
        }
    }
    let random = || -> Result<(), Error> {
        let mut to = [0; 32];
        openssl::rand::rand_bytes(&mut to)?;
        Ok(())
    };
    operations.push(("random", "", 32, Box::new(random)));
    Ok(operations)
}

fn certificates() -> Result<Vec<Operation>, Error> {
    let mut operations: Vec<Operation> = Vec::new();
    for &kind in CertificateType::ALL {
        let der = Pki::generate(kind, 1)?.server.certificate.to_der()?;
        let bytes = der.len();
        let parse = move || -> Result<(), Error> {
            X509::from_der(&der)?;
            Ok(())
        };
        operations.push(("parse", kind.name(), bytes, Box::new(parse)));
    }
    Ok(operations)
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
