// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of an X.509 certificate that attributes show.

use x509_parser::prelude::{FromDer, X509Certificate};

use crate::der;

/// The parts of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate without any bytes that follow it in the file.
    pub value: Vec<u8>,
    /// Name of the subject, DER.
    pub subject: Vec<u8>,
    /// Name of the issuer, DER.
    pub issuer: Vec<u8>,
    /// Serial number, an INTEGER in DER.
    pub serial_number: Vec<u8>,
    /// SubjectPublicKeyInfo, DER.
    pub public_key_info: Vec<u8>,
    /// Start and end of the validity: YYYYMMDD.
    pub validity: [String; 2],
    /// Whether it is a CA certificate.
    pub authority: bool,
}

impl Certificate {
    /// Parses the content of a file; None if it is not a certificate.
    #[must_use]
    pub fn parse(content: &[u8]) -> Option<Certificate> {
        let (rest, certificate) = X509Certificate::from_der(content).ok()?;
        let date = |time: x509_parser::time::ASN1Time| {
            let date = time.to_datetime().date();
            format!("{:04}{:02}{:02}", date.year(), u8::from(date.month()), date.day())
        };
        let validity = certificate.validity();
        Some(Certificate {
            value: content[..content.len() - rest.len()].to_vec(),
            subject: certificate.subject().as_raw().to_vec(),
            issuer: certificate.issuer().as_raw().to_vec(),
            serial_number: der::integer(certificate.raw_serial()),
            public_key_info: certificate.public_key().raw.to_vec(),
            validity: [date(validity.not_before), date(validity.not_after)],
            authority: certificate.is_ca(),
        })
    }
}
