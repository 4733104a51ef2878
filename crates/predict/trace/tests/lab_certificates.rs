// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sizes that studies take for granted are those of the certificates that the lab makes.

use warifu_model::{CertificateType, Keyword, lab_certificate_bytes};
use warifu_tls_client::Pki;

#[test]
fn default_sizes_are_the_lab_pkis() {
    for &certificate in CertificateType::ALL {
        for chain_length in 1..=3 {
            let sizes = Pki::generate(certificate, chain_length).unwrap().sizes().unwrap();
            let assumed = lab_certificate_bytes(certificate, chain_length);
            let assumed: Vec<usize> = assumed.into_iter().map(usize::from).collect();
            assert_eq!(sizes.server_chain_bytes, assumed);
            assert_eq!(sizes.client_chain_bytes, assumed);
        }
    }
}
