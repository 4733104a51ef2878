// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sizes that studies take for granted are those of the certificates that the lab makes.

use warifu_model::{CertificateType, lab_certificate_bytes};
use warifu_tls_client::{CertificateType as Made, Pki};

#[test]
fn default_sizes_are_the_lab_pkis() {
    for (assumed, made) in [
        (CertificateType::EcdsaSecp256r1, Made::EcdsaSecp256r1),
        (CertificateType::Rsa2048, Made::Rsa2048),
    ] {
        for chain_length in 1..=3 {
            let sizes = Pki::generate(made, chain_length).unwrap().sizes().unwrap();
            let assumed: Vec<usize> =
                lab_certificate_bytes(assumed, chain_length).into_iter().map(usize::from).collect();
            assert_eq!(sizes.server_chain_bytes, assumed);
            assert_eq!(sizes.client_chain_bytes, assumed);
        }
    }
}
