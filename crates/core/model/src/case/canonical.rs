// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The canonical form of a case, which names it, and the form of version 1, which seeds it.

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{
    Authentication, Case, CaseId, CertificateType, CipherSuite, CongestionControl, Group, Host,
    Https, KeyShare, KeyStoreChoice, Link, Pattern, Server, Session, Stack, TlsVersion,
};

/// The version of the canonical form. Version 1 had a flat stack of TLS over TCP, with one kernel
/// for both ends.
pub const CANONICAL_VERSION: u32 = 2;

#[derive(Serialize)]
struct Versioned<'a> {
    version: u32,
    #[serde(flatten)]
    case: &'a Case,
}

/// A case as version 1 wrote it: fields in this order.
#[derive(Serialize)]
struct CaseV1<'a> {
    device: &'a Host,
    server: &'a Server,
    key_store: &'a KeyStoreChoice,
    link: &'a Link,
    stack: StackV1<'a>,
    pattern: &'a Pattern,
}

#[derive(Serialize)]
struct StackV1<'a> {
    protocol: &'static str,
    tls: TlsVersion,
    session: Session,
    authentication: Authentication,
    group: Group,
    certificate: CertificateType,
    chain_length: u8,
    server_certificate_bytes: &'a [u16],
    client_certificate_bytes: &'a [u16],
    cipher_suite: CipherSuite,
    key_share: KeyShare,
    server_name: Option<&'a str>,
    kernel: &'a str,
    congestion_control: CongestionControl,
    initcwnd: u8,
    nagle: bool,
}

impl Case {
    /// The canonical form: JSON with the form's version, keys in the order of the fields, and
    /// integers in base units.
    pub fn canonical(&self) -> String {
        json(&Versioned { version: CANONICAL_VERSION, case: self })
    }

    /// Reads a case back from its canonical form, or from that of version 1.
    ///
    /// # Errors
    /// The text is of an unknown version of the form, or is none; the message says which.
    pub fn from_canonical(text: &str) -> Result<Case, String> {
        let mut value: Value =
            serde_json::from_str(text).map_err(|error| format!("is not a case: {error}"))?;
        let version = match value.as_object_mut() {
            Some(object) => object.remove("version").map_or(1, |v| v.as_u64().unwrap_or(0)),
            None => return Err("is not a case: expected a JSON object".into()),
        };
        if version == 1 {
            // What is no case of version 1 is none of version 2 either, and is refused below.
            let _ = stack_of_version_1(&mut value);
        } else if version != u64::from(CANONICAL_VERSION) {
            return Err(format!(
                "is a case of version {version}: this program reads 1 and {CANONICAL_VERSION}; \
                 predict and measure the study again"
            ));
        }
        serde_json::from_value(value).map_err(|error| format!("is not a case: {error}"))
    }

    /// What cases have in common that need the same operations of the same profiles: all but the
    /// link's conditions other than its MTU.
    pub fn needs(&self) -> String {
        let Case { device, server, key_store, link, stack, pattern } = self;
        json(&(device, server, key_store, link.mtu, stack, pattern))
    }

    /// The name of this case, see [`CaseId`].
    pub fn id(&self) -> CaseId {
        name(&self.canonical())
    }

    /// What the seeds of its trials derive from: the name that version 1 of the canonical form gave
    /// this case, so that its predictions stay what they were, or its name if version 1 could not
    /// express it.
    pub fn seed_id(&self) -> CaseId {
        self.canonical_v1().map_or_else(|| self.id(), |text| name(&text))
    }

    /// The canonical form of version 1; `None` for a case that it could not express.
    fn canonical_v1(&self) -> Option<String> {
        let Case { device, server, key_store, link, stack, pattern } = self;
        let Stack::Https(Https { tls, tcp }) = stack else { return None };
        // It had neither a key from outside nor a request with a body nor a pause.
        let newer = tls.psk.is_some() || pattern.request_body > 0 || pattern.pause.is_some();
        if tcp.device != tcp.server || newer {
            return None;
        }
        let stack = StackV1 {
            protocol: "https",
            tls: tls.version,
            session: tls.session,
            authentication: tls.authentication,
            group: tls.group,
            certificate: tls.certificate,
            chain_length: tls.chain_length,
            server_certificate_bytes: &tls.server_certificate_bytes,
            client_certificate_bytes: &tls.client_certificate_bytes,
            cipher_suite: tls.cipher_suite,
            key_share: tls.key_share,
            server_name: tls.server_name.as_deref(),
            kernel: &tcp.device,
            congestion_control: tcp.congestion_control,
            initcwnd: tcp.initcwnd,
            nagle: tcp.nagle,
        };
        Some(json(&CaseV1 { device, server, key_store, link, stack, pattern }))
    }
}

/// Makes the flat stack of version 1 a layered one; `None` where it is not of that form.
fn stack_of_version_1(case: &mut Value) -> Option<()> {
    let stack = case.get_mut("stack")?.as_object_mut()?;
    let mut tcp = Map::new();
    let kernel = stack.remove("kernel")?;
    tcp.insert("device".into(), kernel.clone());
    tcp.insert("server".into(), kernel);
    for key in ["congestion_control", "initcwnd", "nagle"] {
        tcp.insert(key.into(), stack.remove(key)?);
    }
    let protocol = stack.remove("protocol")?;
    let mut tls = std::mem::take(stack);
    let version = tls.remove("tls")?;
    tls.insert("version".into(), version);
    stack.insert("protocol".into(), protocol);
    stack.insert("tls".into(), Value::Object(tls));
    stack.insert("tcp".into(), Value::Object(tcp));
    Some(())
}

/// A case holds only strings, numbers, lists and enums, so serialisation cannot fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn name(canonical: &str) -> CaseId {
    let digest = Sha256::digest(canonical.as_bytes());
    CaseId(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::any_case;
    use crate::case::{Psk, PskMode};

    /// A changed id would orphan every result that is stored under the old one.
    #[test]
    fn canonical_form_of_version_2() {
        assert_eq!(
            any_case().canonical(),
            "{\"version\":2,\"device\":{\"profile\":\"d\"},\"server\":{\"profile\":\"s\"},\
             \"key_store\":{\"profile\":\"software\",\"session_open\":true},\
             \"link\":{\"profile\":\"loopback\",\"rtt\":60000000,\"jitter\":[],\
             \"keep_order\":true,\"rate_up\":null,\"rate_down\":1000000,\
             \"queue_packets\":1000,\"mtu\":1500,\
             \"loss\":{\"kind\":\"independent\",\"probability\":0.02}},\
             \"stack\":{\"protocol\":\"https\",\"tls\":{\"version\":\"1.3\",\"session\":\"full\",\
             \"authentication\":\"server\",\"group\":\"secp256r1\",\
             \"certificate\":\"ecdsa_secp256r1\",\"chain_length\":1,\
             \"server_certificate_bytes\":[474],\"client_certificate_bytes\":[],\
             \"cipher_suite\":\"TLS_AES_128_GCM_SHA256\",\"key_share\":\"fresh\",\
             \"server_name\":null},\
             \"tcp\":{\"device\":\"linux-6.18\",\"server\":\"linux-6.18\",\
             \"congestion_control\":\"cubic\",\"initcwnd\":10,\"nagle\":false}},\
             \"pattern\":{\"kind\":\"request\",\"path\":\"/\",\"response_body\":846,\
             \"concurrent\":1}}"
        );
        let mut busy = any_case();
        busy.server.workers = 8;
        assert!(busy.canonical().contains("\"server\":{\"profile\":\"s\",\"workers\":8}"));
    }

    /// Cyclone DDS and an exchange were what a case of DDS had before it could say so.
    #[test]
    fn dds_of_before_keeps_its_name() {
        let protection = crate::case::DdsProtection::None;
        let dds = |middleware| crate::case::Dds {
            crypto: crate::case::DdsCrypto::None,
            aead: crate::case::DdsAead::Aes256Gcm,
            data_protection: protection,
            metadata_protection: protection,
            rtps_protection: protection,
            discovery_protection: protection,
            middleware,
        };
        let cyclone =
            Case { stack: Stack::Dds(dds(crate::case::DdsMiddleware::CycloneDds)), ..any_case() };
        let text = cyclone.canonical();
        assert!(!text.contains("middleware") && !text.contains("\"rate\""), "{text}");
        assert_eq!(Case::from_canonical(&text), Ok(cyclone));
        let fast =
            Case { stack: Stack::Dds(dds(crate::case::DdsMiddleware::FastDds)), ..any_case() };
        let text = fast.canonical();
        assert!(text.contains("\"discovery_protection\":\"NONE\",\"middleware\":\"fastdds\""));
        assert_eq!(Case::from_canonical(&text), Ok(fast));
    }

    /// A GET was what a case had before it could say so, and certificates.
    #[test]
    fn upload_and_psk_are_left_out_where_there_is_none() {
        let text = any_case().canonical();
        assert!(!text.contains("request_body") && !text.contains("\"psk\""), "{text}");
        let mut case = any_case();
        case.pattern.request_body = 100;
        if let Stack::Https(https) = &mut case.stack {
            https.tls.authentication = Authentication::Psk;
            https.tls.psk = Some(Psk { mode: PskMode::PskKe, identity_bytes: 16 });
        }
        let text = case.canonical();
        assert!(text.contains("\"response_body\":846,\"request_body\":100"), "{text}");
        assert!(text.contains("\"psk\":{\"mode\":\"psk_ke\",\"identity_bytes\":16}"), "{text}");
        assert_eq!(case.seed_id(), case.id());
        assert_eq!(Case::from_canonical(&text), Ok(case));
    }

    /// The name that version 1 gave the same case; predictions rest on it.
    #[test]
    fn seed_of_a_version_1_case() {
        assert_eq!(any_case().seed_id(), CaseId("359b04fe327d9b80".into()));
    }

    #[test]
    fn seed_of_a_case_beyond_version_1() {
        let mut case = any_case();
        if let Stack::Https(https) = &mut case.stack {
            https.tcp.device = "lwip-2.1".into();
        }
        assert_eq!(case.seed_id(), case.id());
        assert_ne!(case.seed_id(), any_case().seed_id());
    }

    #[test]
    fn canonical_form_reads_back() {
        let case = any_case();
        assert_eq!(Case::from_canonical(&case.canonical()), Ok(case));
    }

    #[test]
    fn canonical_form_of_version_1_reads_back() {
        let case = any_case();
        assert_eq!(Case::from_canonical(&case.canonical_v1().unwrap()), Ok(case));
        let error = Case::from_canonical("{\"stack\":{\"kernel\":1}}").unwrap_err();
        assert!(error.starts_with("is not a case: "), "{error}");
    }

    #[test]
    fn canonical_form_of_another_version_is_refused() {
        let newer = any_case().canonical().replace("\"version\":2", "\"version\":3");
        assert!(Case::from_canonical(&newer).unwrap_err().contains("version 3"));
    }
}
