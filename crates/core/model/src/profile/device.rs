// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device profile: what each operation costs on a machine.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::band::{Band, BandOf};
use super::calibration_case::CalibrationCase;
use super::cipher::{self, CipherCall, CipherCost};
use super::condition::Condition;
use super::costs::Costs;
use super::figure::Provenance;
use super::lowering::{Lowered, Sums};
use super::machine::{Code, Machine};
use super::rate::Rate;
use super::shown::{Show, Shown};
use super::speed::Speed;
use crate::case::{DdsAead, Stack};
use crate::distribution::Distribution;
use crate::error::Error;
use crate::kind::Kind;
use crate::operation::Operation;
use crate::primitive::{Cipher, Primitive};
use crate::units::Nanos;

/// What each operation costs on a machine.
#[derive(Clone, Debug)]
pub struct DeviceProfile {
    /// Its name, the file's without ending.
    pub name: String,
    /// The file it was read from, for errors.
    pub file: String,
    /// What the machine is.
    pub description: String,
    /// A processor idle for longer works at its cold costs until its program waits again.
    pub idle_threshold: Nanos,
    /// After so long without a connection its first computes at its `rested` costs, from its
    /// beginning to its end: what it needs was used before the pause, and others had the caches
    /// since.
    pub rest_threshold: Nanos,
    /// What all computing of a connection has in common; `None` where steps vary each for itself.
    pub speed: Option<Speed>,
    /// The cases that its figures were found from.
    pub calibration_cases: Vec<CalibrationCase>,
    /// What the figures cover, for errors about what they do not.
    pub(super) scope: Option<String>,
    pub(super) idle_provenance: Provenance,
    /// What processor and library it has.
    pub machine: Machine,
    pub(super) entries: BTreeMap<Operation, Vec<Entry>>,
    /// What calls of cryptography cost; their conditions are empty.
    pub(super) primitives: BTreeMap<Primitive, Entry>,
    pub(super) sums: Sums,
    /// The same machine after a pause, made when it is first asked for.
    pub(super) rested: OnceLock<Option<Box<DeviceProfile>>>,
}

/// The cost of one operation, as [`DeviceProfile::cost`] finds it.
#[derive(Clone, Debug)]
pub struct Cost<'a> {
    /// With warm caches: what varies from one time to the next.
    pub warm: Cow<'a, Distribution>,
    /// After the processor was idle for longer than the profile's threshold.
    pub cold: Cow<'a, Distribution>,
    /// What assumed figures take beside that: a band each, once.
    pub bands: Vec<Band>,
    /// Additional time for each byte, ns, the mean of what varies or the middle of a band; 0 for
    /// what a recipe gives.
    pub per_byte_ns: f64,
    /// Additional time for the bytes asked about; by a recipe that of the instructions, too. What
    /// has a law is in the laws above.
    pub bytes_cost: Nanos,
    /// Additional time that the cipher of a DDS protection takes.
    pub cipher: Option<CipherCost>,
    /// Where the figure comes from.
    pub source: Option<&'a str>,
    /// Its kind.
    pub kind: Kind,
    /// The calibration run it comes from.
    pub run_id: Option<&'a str>,
    /// What it was lowered to; `None` for an operation's own figure.
    pub lowered: Option<Lowered<'a>>,
}

/// A cost and the conditions under which it holds.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) when: Condition,
    pub(super) warm: Distribution,
    pub(super) cold: Option<Distribution>,
    /// In a connection before which both ends rested, warm or cold.
    pub(super) rested: Option<Distribution>,
    pub(super) per_byte: Rate,
    /// The kind of its code, where that is another than the device's.
    pub(super) code: Option<Code>,
    pub(super) provenance: Provenance,
}

impl Entry {
    pub(super) fn cost(&self, of: BandOf, bytes: u32) -> Cost<'_> {
        let per_byte_ns = self.byte_ns();
        let bytes = f64::from(bytes);
        let is_band = self.is_band();
        let constant = self.per_byte.is_constant() || bytes == 0.0;
        let law = |cold| match (is_band, constant) {
            (true, _) => Cow::Owned(Distribution::constant(Nanos::ZERO)),
            (false, true) => Cow::Borrowed(self.law(cold)),
            (false, false) => {
                let of_bytes = self.per_byte.law(bytes);
                let terms = [(self.law(cold), 1), (&of_bytes, 1)];
                Cow::Owned(Distribution::sum_of_independent(&terms))
            }
        };
        let beside = constant && !is_band;
        Cost {
            warm: law(false),
            cold: law(true),
            bands: is_band.then(|| self.band(of, 1, bytes)).into_iter().collect(),
            per_byte_ns,
            bytes_cost: Nanos(if beside { (per_byte_ns * bytes).round() as u64 } else { 0 }),
            cipher: None,
            source: self.provenance.source.as_deref(),
            kind: self.provenance.kind,
            run_id: self.provenance.run_id.as_deref(),
            lowered: None,
        }
    }

    /// Warm, and cold and per byte where it depends on that; it is then no single number.
    pub(super) fn shown(&self) -> Shown {
        let mut shown = self.warm.shown("ns");
        if let Some(cold) = &self.cold {
            shown.text = format!("{}; cold {}", shown.text, cold.shown("ns").text);
            shown.number = shown.number.filter(|_| *cold == self.warm);
        }
        if let Some(rested) = &self.rested {
            shown.text = format!("{}; after a rest {}", shown.text, rested.shown("ns").text);
            shown.number = None;
        }
        if self.per_byte.mean_ns() > 0.0 {
            shown.text = format!("{}; {} per B", shown.text, self.per_byte.shown());
            shown.number = None;
        }
        shown
    }
}

impl Cost<'_> {
    /// All of it but the cipher's, ns: the mean of what varies, and each band in its middle.
    pub fn estimate_ns(&self, cold: bool) -> f64 {
        let varying = if cold { &self.cold } else { &self.warm };
        let bands = self.bands.iter().map(|band| band.law(cold).quantile(0.5).0 as f64);
        varying.mean_ns() + bands.sum::<f64>() + self.bytes_cost.0 as f64
    }

    /// What varies and the bands together, as of a board of which nothing else is known.
    pub fn law(&self, cold: bool) -> Cow<'_, Distribution> {
        let varying: &Distribution = if cold { &self.cold } else { &self.warm };
        if self.bands.is_empty() {
            return Cow::Borrowed(varying);
        }
        let bands = self.bands.iter().map(|band| (band.law(cold), 1));
        let terms: Vec<(&Distribution, u32)> = std::iter::once((varying, 1)).chain(bands).collect();
        Cow::Owned(Distribution::sum_of_independent(&terms))
    }
}

impl DeviceProfile {
    /// The cost of an operation in a stack by its own figures alone: see [`Costs::cost`], which
    /// knows its library's recipes as well.
    ///
    /// # Errors
    /// As there.
    pub fn cost(&self, operation: Operation, stack: &Stack, bytes: u32) -> Result<Cost<'_>, Error> {
        Costs::own(self).cost(operation, stack, bytes)
    }

    /// The machine as a connection finds it that begins after a pause without any: with its
    /// `rested` costs, of operations that have one, after its threshold, else as it is.
    pub fn after_pause(&self, pause: Option<Nanos>) -> &DeviceProfile {
        if pause.is_none_or(|pause| pause < self.rest_threshold) {
            return self;
        }
        let rested = self.rested.get_or_init(|| {
            let states_any = self.entries.values().flatten().any(|entry| entry.rested.is_some());
            states_any.then(|| Box::new(self.at_rest()))
        });
        rested.as_deref().unwrap_or(self)
    }

    fn at_rest(&self) -> DeviceProfile {
        let mut device = DeviceProfile { rested: OnceLock::new(), ..self.clone() };
        for entry in device.entries.values_mut().flatten() {
            if let Some(rested) = entry.rested.take() {
                entry.warm = rested.clone();
                entry.cold = Some(rested);
            }
        }
        device
    }

    /// The AEADs of DDS whose encryption it has figures of, each once: without any, nothing can be
    /// said of what protection costs there.
    pub fn dds_ciphers(&self) -> Vec<DdsAead> {
        let mut found: Vec<DdsAead> = Vec::new();
        for primitive in self.primitives.keys() {
            if let Primitive::Seal(Cipher::Dds(aead, _)) = *primitive
                && !found.contains(&aead)
            {
                found.push(aead);
            }
        }
        found
    }

    /// The figure of a cipher's call, or of what stands for it.
    pub(super) fn stand_in(&self, call: CipherCall) -> Option<(Primitive, &Entry)> {
        cipher::stands_in(call.primitive).find_map(|of| Some((of, self.primitives.get(&of)?)))
    }

    /// The cost of a primitive for so many bytes, if the profile has one.
    pub fn primitive(&self, primitive: Primitive, bytes: u32) -> Option<Cost<'_>> {
        let entry = self.primitives.get(&primitive)?;
        Some(entry.cost(BandOf::Primitive(primitive), bytes))
    }

    /// What code a primitive's figure is of, where the profile says so.
    pub fn code(&self, primitive: Primitive) -> Option<Code> {
        self.primitives.get(&primitive).and_then(|entry| entry.code.or(self.machine.code))
    }

    /// The calibration runs that its figures come from, sorted.
    pub fn run_ids(&self) -> Vec<&str> {
        let entries = self.entries.values().flatten().chain(self.primitives.values());
        let all = entries
            .map(|entry| &entry.provenance)
            .chain([&self.idle_provenance])
            .filter_map(|p| p.run_id.as_deref());
        let sorted: std::collections::BTreeSet<&str> = all.collect();
        sorted.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{any_tls, https};
    use crate::case::{
        Authentication, Dds, DdsCrypto, DdsMiddleware, DdsProtection, Group, Psk, PskMode, Session,
        Tls, TlsVersion,
    };
    use crate::operation::{DdsMessage, Direction, HandshakeMessage, Role};
    use crate::primitive::SignatureAlgorithm;

    #[test]
    fn primitives_are_found_by_name_and_do_not_stand_for_messages() {
        let text = "[[primitive]]\nname = \"sign.ed25519\"\nwarm = \"3 ms\"\n\
                    per_byte = \"0.5 ns\"\nsource = \"a bench\"\nkind = \"simulated\"\n\
                    run_id = \"m3-1\"\n";
        let profile = parse(text).unwrap();
        let sign = Primitive::Sign(SignatureAlgorithm::Ed25519);
        let cost = profile.primitive(sign, 1000).unwrap();
        assert_eq!(*cost.warm, Distribution::constant(Nanos::from_millis(3)));
        assert_eq!((cost.bytes_cost, cost.source), (Nanos(500), Some("a bench")));
        assert!(profile.primitive(Primitive::Random, 1).is_none());
        assert_eq!(profile.run_ids(), ["m3-1"]);
        let error = profile.cost(HELLO, &stack(), 0).unwrap_err().to_string();
        assert!(error.contains("; its costs of primitives (sign.ed25519 ..) say"), "{error}");
    }

    /// One line says all that is to change, so that a study is corrected once, not once a run.
    #[test]
    fn several_missing_operations() {
        let send = |message| Operation::Tls(Role::Client, Direction::Send, message);
        let verify = send(HandshakeMessage::CertificateVerify);
        let text = "[[operation]]\nname = \"client.send.ClientHello\"\nwarm = \"1 us\"\n\
                    when = { certificate = \"rsa-2048\" }\n";
        let profile = parse(text).unwrap();
        let stack = https(any_tls());
        let error =
            Costs::own(&profile).lacks(&[HELLO, verify, HELLO], &stack).unwrap().to_string();
        let names = "d.toml: client.send.ClientHello, client.send.CertificateVerify have no cost";
        assert!(error.starts_with(names), "{error}");
        assert!(error.contains("certificate = \"rsa-2048\" and "), "{error}");
        assert!(error.contains("stack.authentication = \"server\", or calibrate"), "{error}");
        let free = parse(
            "[[operation]]\nname = \"client.receive.EncryptedExtensions\"\nwarm = \"1 us\"\n",
        );
        assert!(Costs::own(&free.unwrap()).lacks(&[EXTENSIONS], &stack).is_none());
    }

    fn dds(crypto: DdsCrypto, aead: DdsAead) -> Stack {
        Stack::Dds(Dds {
            middleware: DdsMiddleware::CycloneDds,
            crypto,
            aead,
            data_protection: DdsProtection::None,
            metadata_protection: DdsProtection::SignWithOriginAuthentication,
            rtps_protection: DdsProtection::Encrypt,
            discovery_protection: DdsProtection::None,
        })
    }

    const MESSAGE: Operation =
        Operation::Dds(Role::Client, Direction::Send, DdsMessage::RtpsMessage);
    const SUBMESSAGE: Operation =
        Operation::Dds(Role::Client, Direction::Send, DdsMessage::Submessage);

    /// What the plugin does itself, by its name, and beside it what its cipher does.
    const PLUGINS: &str = "\
        [[operation]]\nname = \"client.send.DdsProtectedMessage\"\nwarm = \"5 us\"\n\
        cold = \"9 us\"\nper_byte = \"1 ns\"\nwhen = { crypto = \"builtin\" }\n\
        [[operation]]\nname = \"client.send.DdsProtectedMessage\"\nwarm = \"1 us\"\n\
        when = { crypto = \"warifu\" }\n\
        [[operation]]\nname = \"client.send.DdsProtectedSubmessage\"\nwarm = \"1 us\"\n\
        when = { crypto = [\"builtin\", \"warifu\"] }\n\
        [[primitive]]\nname = \"aead.seal.AES-256-GCM\"\nwarm = \"700 ns\"\n\
        per_byte = \"0.2 ns\"\n\
        [[primitive]]\nname = \"aead.seal.AES-256-GCM.keyed\"\nwarm = \"30 ns\"\n\
        per_byte = \"0.1 ns\"\n\
        [[primitive]]\nname = \"aead.mac.AES-256-GCM.keyed\"\nwarm = \"20 ns\"\n\
        per_byte = \"0.05 ns\"\n";

    #[test]
    fn protection_costs_the_plugin_and_its_cipher() {
        let profile = parse(PLUGINS).unwrap();
        let cost = |crypto, operation| {
            let stack = dds(crypto, DdsAead::Aes256Gcm);
            let cost = profile.cost(operation, &stack, 1000).unwrap();
            (cost.warm.mean().0, cost.bytes_cost.0, cost.cipher.unwrap())
        };
        let (own, bytes, cipher) = cost(DdsCrypto::Builtin, MESSAGE);
        // 700 ns with its key, and 1000 B of 0.2 ns.
        assert_eq!((own, bytes, cipher.warm.0, cipher.cold.0), (5_000, 1_000, 900, 900));
        assert_eq!(cipher.primitive.to_string(), "aead.seal.AES-256-GCM");
        let (own, bytes, cipher) = cost(DdsCrypto::Warifu, MESSAGE);
        assert_eq!((own, bytes, cipher.warm.0), (1_000, 0, 130));
        // A MAC over all of it, and one over its tag for the receiver: 70 ns and 21 ns.
        let (own, _, cipher) = cost(DdsCrypto::Warifu, SUBMESSAGE);
        assert_eq!((own, cipher.warm.0), (1_000, 91));
        assert_eq!(profile.dds_ciphers(), [DdsAead::Aes256Gcm]);
    }

    #[test]
    fn inputs_name_the_cipher_of_a_protection() {
        let profile = parse(PLUGINS).unwrap();
        let stack = dds(DdsCrypto::Warifu, DdsAead::Aes256Gcm);
        let inputs = Costs::own(&profile).inputs(&stack, |operation| operation == MESSAGE);
        let keys: Vec<&str> = inputs.iter().map(|input| input.key.as_str()).collect();
        assert!(keys.contains(&"client.send.DdsProtectedMessage"), "{keys:?}");
        assert!(keys.contains(&"aead.seal.AES-256-GCM.keyed"), "{keys:?}");
    }

    #[test]
    fn cipher_that_a_device_lacks() {
        let profile = parse(PLUGINS).unwrap();
        let stack = dds(DdsCrypto::Warifu, DdsAead::Aegis256);
        let error = Costs::own(&profile).lacks(&[MESSAGE], &stack).unwrap().to_string();
        assert_eq!(
            error,
            "d.toml: aead.seal.AEGIS-256.keyed has no cost, which crypto=warifu takes: add a \
             [[primitive]] of that name with its time a call and per_byte, or calibrate the device"
        );
        assert_eq!(Costs::own(&profile).missing_operations(&[MESSAGE], &stack), [MESSAGE]);
        let plain = parse("[[operation]]\nname = \"client.send.DdsSample\"\nwarm = \"1 us\"\n");
        let both = [MESSAGE, SUBMESSAGE];
        let error =
            Costs::own(&plain.unwrap()).lacks(&both, &dds(DdsCrypto::Builtin, DdsAead::Aes256Gcm));
        let error = error.unwrap().to_string();
        assert!(error.contains("client.send.DdsProtectedMessage, client.send.Dds"), "{error}");
        assert!(
            error.contains("the primitives aead.seal.AES-256-GCM, aead.mac.AES-256"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1);
    }

    const HELLO: Operation =
        Operation::Tls(Role::Client, Direction::Send, HandshakeMessage::ClientHello);

    /// Its cost depends on no choice, so that entries may say what they like.
    const EXTENSIONS: Operation =
        Operation::Tls(Role::Client, Direction::Receive, HandshakeMessage::EncryptedExtensions);

    fn parse(operations: &str) -> Result<DeviceProfile, String> {
        let text = format!("name = \"d\"\ndescription = \"a device\"\n{operations}");
        DeviceProfile::parse("d", &text, "d.toml").map_err(|error| error.to_string())
    }

    fn tls() -> Tls {
        Tls { group: Group::X25519, ..any_tls() }
    }

    fn stack() -> Stack {
        https(tls())
    }

    #[test]
    fn most_specific_entry_in_any_order() {
        let entries = [
            "[[operation]]\nname = \"client.receive.EncryptedExtensions\"\nwarm = \"1 ms\"\n",
            "[[operation]]\nname = \"client.receive.EncryptedExtensions\"\nwarm = \"2 ms\"\n\
             when = { tls = \"1.3\" }\n",
            "[[operation]]\nname = \"client.receive.EncryptedExtensions\"\nwarm = \"3 ms\"\n\
             when = { tls = \"1.3\", session = [\"full\", \"psk_dhe_ke\"] }\n\
             per_byte = \"0.5 ns\"\n",
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let profile = parse(&order.map(|index| entries[index]).concat()).unwrap();
            let warm = |stack: &Stack| profile.cost(EXTENSIONS, stack, 100).unwrap().warm.mean();
            assert_eq!(warm(&stack()), Nanos::from_millis(3));
            assert_eq!(
                warm(&https(Tls { session: Session::EarlyData, ..tls() })),
                Nanos::from_millis(2)
            );
            assert_eq!(
                warm(&https(Tls { version: TlsVersion::Tls12, ..tls() })),
                Nanos::from_millis(1)
            );
            assert_eq!(profile.cost(EXTENSIONS, &stack(), 101).unwrap().bytes_cost, Nanos(51));
            assert_eq!(profile.cost(EXTENSIONS, &stack(), 0).unwrap().kind, Kind::Assumed);
        }
    }

    /// A handshake with certificates says nothing of one by a key from outside; a resumption does,
    /// with TLS 1.3.
    #[test]
    fn figures_of_a_key_from_outside() {
        let entry = |warm: &str, when: &str| {
            format!(
                "[[operation]]\nname = \"client.send.ClientHello\"\nwarm = \"{warm}\"\n\
                 when = {{ {when} }}\n"
            )
        };
        let full = entry("1 ms", "tls = \"1.3\", session = \"full\", group = \"x25519\"");
        let resumed = entry(
            "2 ms",
            "tls = \"1.3\", session = \"psk_dhe_ke\", group = \"x25519\", \
             authentication = \"server\"",
        );
        let own = entry(
            "3 ms",
            "tls = \"1.3\", session = \"psk_dhe_ke\", group = \"x25519\", \
             authentication = \"psk\", psk_mode = \"psk_dhe_ke\"",
        );
        let any = entry("4 ms", "tls = \"1.2\", psk_mode = \"psk_ke\"");
        let all = parse(&[&*full, &resumed, &own, &any].concat()).unwrap();
        let without_own = parse(&[&*full, &resumed].concat()).unwrap();
        let by_psk = |version, mode| {
            let psk = Some(Psk { mode, identity_bytes: 16 });
            https(Tls { version, authentication: Authentication::Psk, psk, ..tls() })
        };
        let warm = |profile: &DeviceProfile, stack: &Stack| {
            profile.cost(HELLO, stack, 0).map(|cost| cost.warm.mean()).ok()
        };
        let ms = |ms| Some(Nanos::from_millis(ms));
        let stack = by_psk(TlsVersion::Tls13, PskMode::PskDheKe);
        assert_eq!((warm(&all, &stack), warm(&without_own, &stack)), (ms(3), ms(2)));
        let stack = by_psk(TlsVersion::Tls13, PskMode::PskKe);
        assert_eq!((warm(&all, &stack), warm(&without_own, &stack)), (None, None));
        let stack = by_psk(TlsVersion::Tls12, PskMode::PskKe);
        assert_eq!((warm(&all, &stack), warm(&without_own, &stack)), (ms(4), None));
    }

    #[test]
    fn missing_operation() {
        let profile = parse(
            "scope = \"server-only authentication\"\n[[operation]]\n\
             name = \"client.send.ClientHello\"\n\
             warm = \"1 ms\"\nwhen = { tls = \"1.2\" }\n",
        )
        .unwrap();
        let message = profile.cost(HELLO, &stack(), 0).unwrap_err().to_string();
        assert!(
            message.starts_with("d.toml: client.send.ClientHello has no cost for tls=1.3"),
            "{message}"
        );
        assert!(message.ends_with("use stack.tls = \"1.2\", or calibrate the device"), "{message}");
        let verify =
            Operation::Tls(Role::Client, Direction::Send, HandshakeMessage::CertificateVerify);
        let mutual = https(Tls { authentication: Authentication::Mutual, ..tls() });
        let message = profile.cost(verify, &mutual, 0).unwrap_err().to_string();
        assert!(message.contains("(server-only authentication)"), "{message}");
        assert!(message.contains("use stack.authentication = \"server\""), "{message}");
        assert_eq!(message.lines().count(), 1);
    }

    #[test]
    fn two_equally_specific_entries() {
        let profile = parse(
            "[[operation]]\nname = \"client.receive.EncryptedExtensions\"\nwarm = \"1 ms\"\n\
             when = { tls = \"1.3\" }\n\
             [[operation]]\nname = \"client.receive.EncryptedExtensions\"\nwarm = \"2 ms\"\n\
             when = { group = \"x25519\" }\n",
        )
        .unwrap();
        assert!(
            profile.cost(EXTENSIONS, &stack(), 0).unwrap_err().to_string().contains("two costs")
        );
        assert!(
            profile.cost(EXTENSIONS, &https(Tls { group: Group::Secp256r1, ..tls() }), 0).is_ok()
        );
    }
}
