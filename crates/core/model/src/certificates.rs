// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sizes of the lab's certificates, which a study need not repeat.

use crate::case::CertificateType;

/// DER sizes of the chain that each end of the lab sends, leaf first, B; `chain_length` from 1
/// to 3. Both ends' sizes are equal: the lab's PKI (`crates/lab/tls-client/src/pki.rs`) fixes every
/// field, and names its server and its client equally long. Leaves below an intermediate carry
/// that one's longer name.
///
/// A test of warifu-trace makes every chain and compares.
pub fn lab_certificate_bytes(certificate: CertificateType, chain_length: u8) -> Vec<u16> {
    let chain: &[u16] = match (certificate, chain_length) {
        (CertificateType::EcdsaSecp256r1, 1) => &[486],
        (CertificateType::EcdsaSecp256r1, 2) => &[496, 455],
        (CertificateType::EcdsaSecp256r1, _) => &[496, 465, 455],
        (CertificateType::Rsa2048, 1) => &[882],
        (CertificateType::Rsa2048, 2) => &[892, 851],
        (CertificateType::Rsa2048, _) => &[892, 861, 851],
    };
    chain.to_vec()
}
