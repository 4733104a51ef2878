// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cases whose runs a profile's figures were found from, so that none of them is judged by a
//! prediction that knows it.

use serde::{Deserialize, Serialize};

use super::figure::non_empty;
use crate::case::{Authentication, CertificateType, Group, Session, TlsVersion};
use crate::reader::{self, Section};
use crate::units::Nanos;

/// A case that a calibration ran, by the choices that its times depend on: another case with the
/// same ones is the same cell, whatever else differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationCase {
    /// The name of its canonical form.
    pub case_id: String,
    /// Its protocol: `https`, `coap` or `dds`.
    pub protocol: String,
    /// The link's delay there and back, ns.
    pub rtt: Nanos,
    /// The version of TLS; the other choices are of TLS as well, and `None` where the handshake has
    /// no use for them: a resumed session shows no certificate, and some have no key exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsVersion>,
    /// Whether it takes up a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Who shows a certificate, of a resumed session in the handshake before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
    /// The curve of the key exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// The certificates, of a resumed session those that its ticket holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateType>,
}

impl CalibrationCase {
    /// Reads the list `calibration_cases` of a device profile.
    pub(super) fn read_all(root: &Section<'_>) -> Vec<CalibrationCase> {
        let sections = root.sections("calibration_cases");
        sections.iter().filter_map(CalibrationCase::read).collect()
    }

    fn read(section: &Section<'_>) -> Option<CalibrationCase> {
        for key in ["case_id", "protocol", "rtt"] {
            if section.table.get(key).is_none() {
                section.refuse(key, "is missing: a calibration case states case_id, protocol, rtt");
            }
        }
        let case_id = section.read("case_id", non_empty);
        let protocol = section.read("protocol", non_empty);
        let rtt = section.read("rtt", reader::duration);
        let (tls, session) =
            (section.read("tls", reader::keyword), section.read("session", reader::keyword));
        let authentication = section.read("authentication", reader::keyword);
        let group = section.read("group", reader::keyword);
        let certificate = section.read("certificate", reader::keyword);
        section.refuse_unknown();
        Some(CalibrationCase {
            case_id: case_id?,
            protocol: protocol?,
            rtt: rtt?,
            tls,
            session,
            authentication,
            group,
            certificate,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::DeviceProfile;

    fn parse(list: &str) -> Result<Vec<CalibrationCase>, String> {
        let text = format!(
            "name = \"d\"\ndescription = \"a device\"\ncalibration_cases = [{list}]\n\
             [[operation]]\nname = \"server.sign\"\nwarm = \"1 ms\"\n"
        );
        let profile = DeviceProfile::parse("d", &text, "d.toml");
        profile.map(|of| of.calibration_cases).map_err(|error| error.to_string())
    }

    const CASE: &str = "{ case_id = \"0a\", protocol = \"https\", rtt = \"20 ms\", tls = \"1.3\", \
                        session = \"full\", authentication = \"server\", group = \"x25519\", \
                        certificate = \"ecdsa_secp256r1\" }";

    #[test]
    fn cases_with_and_without_tls() {
        let cases =
            parse(&format!("{CASE}, {{ case_id = \"b\", protocol = \"coap\", rtt = \"0 ns\" }}"));
        let cases = cases.unwrap();
        assert_eq!(cases[0].group, Some(Group::X25519));
        assert_eq!((cases[0].rtt, cases[1].tls), (Nanos::from_millis(20), None));
        let text = serde_json::to_string(&cases[1]).unwrap();
        assert_eq!(text, r#"{"case_id":"b","protocol":"coap","rtt":0}"#);
        for case in cases {
            let text = serde_json::to_string(&case).unwrap();
            assert_eq!(serde_json::from_str::<CalibrationCase>(&text).unwrap(), case);
        }
    }

    #[test]
    fn mistakes_name_the_key() {
        for (from, to, expected) in [
            ("rtt = \"20 ms\", ", "", "calibration_cases[0].rtt is missing"),
            ("20 ms", "20 B", "calibration_cases[0].rtt is \"20 B\": expected a duration"),
            ("x25519", "x", "calibration_cases[0].group is \"x\": expected"),
            ("session", "sesion", "calibration_cases[0].sesion is unknown; did you mean session?"),
        ] {
            let message = parse(&CASE.replace(from, to)).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }
}
