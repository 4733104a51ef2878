// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The closed list of settings: their dotted paths, and how each is read.

use std::sync::Arc;

use toml::Value;

use super::draft::Draft;
use crate::case::{CertificateType, CipherSuite, Layer, Protocol};
use crate::keyword::Keyword;
use crate::nearest::nearest;
use crate::quantities as quantity;
use crate::reader::{self, show, unknown};
use crate::units::Nanos;

/// One setting of a study.
pub(crate) struct Setting {
    /// Its dotted path.
    pub(crate) path: &'static str,
    /// The layer that it belongs to; it has no effect on a stack without that layer.
    pub(crate) layer: Layer,
    /// Reads a value; the error says what was expected.
    pub(crate) read: fn(&Value) -> Result<Edit, String>,
    /// Whether a flag's text is a word or a quantity, not a number, a truth or a list.
    pub(crate) text: bool,
}

/// A value that was read for its setting, ready to be put into drafts.
#[derive(Clone)]
pub(crate) struct Edit(Arc<dyn Fn(&mut Draft) + Send + Sync>);

impl Edit {
    fn read<T: Clone + Send + Sync + 'static>(
        value: &Value,
        read: impl Fn(&Value) -> Result<T, String>,
        put: fn(&mut Draft, T),
    ) -> Result<Edit, String> {
        let value = read(value)?;
        Ok(Edit(Arc::new(move |draft| put(draft, value.clone()))))
    }

    /// Puts the value into a draft.
    pub(crate) fn apply(&self, draft: &mut Draft) {
        (self.0)(draft);
    }
}

/// Keys that set the same value for several settings.
const BOTH: [(&str, [&str; 2]); 2] = [
    ("link.rate", ["link.rate_up", "link.rate_down"]),
    ("stack.kernel", ["device.tcp", "server.tcp"]),
];

/// The settings that a key stands for, if it stands for several.
pub(crate) fn both(path: &str) -> Option<[&'static str; 2]> {
    BOTH.into_iter().find(|(key, _)| *key == path).map(|(_, paths)| paths)
}

/// The tables of a study that hold settings.
pub(crate) const SECTIONS: [&str; 6] =
    ["device", "server", "key_store", "link", "stack", "pattern"];

/// The setting of a dotted path.
pub(crate) fn find(path: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.path == path)
}

/// The keys of a section, those that stand for several settings among them.
pub(crate) fn keys(section: &str) -> impl Iterator<Item = &'static str> + Clone {
    let paths = SETTINGS.iter().map(|setting| setting.path);
    let all = paths.chain(BOTH.into_iter().map(|(key, _)| key));
    all.filter_map(move |path| path.strip_prefix(section).and_then(|rest| rest.strip_prefix('.')))
}

/// Whether a path names a setting or stands for several.
pub(crate) fn is_path(path: &str) -> bool {
    find(path).is_some() || SECTIONS.contains(&path) || both(path).is_some()
}

/// What to say of a path that is no setting.
pub(crate) fn unknown_path(path: &str) -> String {
    match path.split_once('.') {
        Some((section, key)) if SECTIONS.contains(&section) => unknown(key, keys(section)),
        _ => {
            let paths = || SETTINGS.iter().map(|setting| setting.path);
            // Its key without its section, as in `warifu.ask`; several sections may have it.
            let key = |full: &&str| full.rsplit('.').next() == Some(path);
            let mut names: Vec<&str> = paths().filter(key).collect();
            if names.is_empty() {
                names.extend(nearest(path, paths().chain(SECTIONS)));
            }
            match names.split_last() {
                Some((name, [])) => format!("is unknown; did you mean {name}?"),
                Some((last, others)) => {
                    format!("is unknown; did you mean {} or {last}?", others.join(", "))
                }
                None => "is unknown; expected a setting such as link.rtt or stack.tls".into(),
            }
        }
    }
}

macro_rules! settings {
    ($($layer:expr => { $($path:literal $kind:ident $field:ident = $read:expr;)+ })+) => {
        /// Every setting, in the order of a case.
        pub(crate) static SETTINGS: &[Setting] = &[$($(Setting {
            path: $path,
            layer: $layer,
            read: |value| Edit::read(value, $read, |draft, value| draft.$field = Some(value)),
            text: settings!(@text $kind),
        }),+),+];
    };
    (@text text) => { true };
    (@text bare) => { false };
}

settings! {
    Layer::Any => {
        "device.profile" text device = profile_name;
        "server.profile" text server = profile_name;
        "server.workers" bare workers = workers;
        "link.profile" text link = profile_name;
        "link.rtt" text rtt = quantity::link_delay;
        "link.jitter" bare jitter = quantity::jitter;
        "link.keep_order" bare keep_order = reader::boolean;
        "link.rate_up" text rate_up = quantity::rate;
        "link.rate_down" text rate_down = quantity::rate;
        "link.queue_packets" bare queue_packets = quantity::queue_packets;
        "link.mtu" bare mtu = quantity::mtu;
        "link.loss" text loss = quantity::loss;
        "stack.protocol" text protocol = reader::keyword;
        "pattern.kind" text pattern = reader::keyword;
        "pattern.path" text path = request_path;
        "pattern.response_body" text response_body = body;
        "pattern.request_body" text request_body = body;
        "pattern.pause" text pause = pause;
        "pattern.concurrent" bare concurrent = concurrent;
    }
    // A stack without security has no key to keep.
    Layer::Tls => {
        "key_store.profile" text key_store = profile_name;
        "key_store.session_open" bare session_open = reader::boolean;
        "stack.tls" text tls = reader::keyword;
        "stack.session" text session = reader::keyword;
        "stack.authentication" text authentication = reader::keyword;
        "stack.group" text group = reader::keyword;
        "stack.certificate" text certificate = reader::keyword::<CertificateType>;
        "stack.chain_length" bare chain_length = chain_length;
        "stack.server_certificate_bytes" bare server_certificate_bytes = certificate_bytes;
        "stack.client_certificate_bytes" bare client_certificate_bytes = certificate_bytes;
        "stack.cipher_suite" text cipher_suite = cipher_suite;
        "stack.aead" text aead = reader::keyword;
        "stack.key_share" text key_share = reader::keyword;
        "stack.server_name" text server_name = server_name;
        "stack.psk_mode" text psk_mode = reader::keyword;
        "stack.psk_identity_bytes" bare psk_identity_bytes = psk_identity_bytes;
    }
    Layer::Tcp => {
        "device.tcp" text device_tcp = profile_name;
        "server.tcp" text server_tcp = profile_name;
        "stack.congestion_control" text congestion_control = reader::keyword;
        "stack.initcwnd" bare initcwnd = initcwnd;
        "stack.nagle" bare nagle = reader::boolean;
    }
    Layer::Application(Protocol::Coap) => {
        "stack.message_type" text message_type = reader::keyword;
        "stack.ack_timeout" text ack_timeout = ack_timeout;
        "stack.ack_random_factor" bare ack_random_factor_percent = ack_random_factor;
        "stack.max_retransmit" bare max_retransmit = max_retransmit;
    }
    Layer::Application(Protocol::Dds) => {
        "pattern.rate" bare rate = sample_rate;
        "stack.middleware" text middleware = reader::keyword;
        "stack.crypto" text crypto = reader::keyword;
        "stack.crypto_aead" text crypto_aead = reader::keyword;
        "stack.data_protection" text data_protection = reader::keyword;
        "stack.metadata_protection" text metadata_protection = reader::keyword;
        "stack.rtps_protection" text rtps_protection = reader::keyword;
        "stack.discovery_protection" text discovery_protection = reader::keyword;
    }
}

fn profile_name(value: &Value) -> Result<String, String> {
    let name = value.as_str().unwrap_or_default();
    if name.is_empty() { Err("expected a profile's name".into()) } else { Ok(name.into()) }
}

fn chain_length(value: &Value) -> Result<u8, String> {
    reader::integer(value, 1..=3)
        .map(|number| number as u8)
        .map_err(|_| "expected 1, 2 or 3 certificates: the leaf and up to two intermediates".into())
}

/// DER sizes, leaf first. No X.509 certificate with a key and a signature is below 100 B, and
/// TLS messages of several records are beyond the emulation.
fn certificate_bytes(value: &Value) -> Result<Vec<u16>, String> {
    let expected = "expected the DER sizes of 1 to 3 certificates, leaf first, each from 100 to \
                    16000 B, such as [474]";
    let list = value.as_array().filter(|list| (1..=3).contains(&list.len())).ok_or(expected)?;
    list.iter()
        .map(|size| reader::integer(size, 100..=16_000).map(|size| size as u16))
        .collect::<Result<_, _>>()
        .map_err(|_| expected.into())
}

fn cipher_suite(value: &Value) -> Result<CipherSuite, String> {
    let word = value.as_str().unwrap_or_default();
    if word.is_empty() {
        return Err("expected an IANA name such as \"TLS_AES_128_GCM_SHA256\"".into());
    }
    CipherSuite::from_word(word)
}

/// RFC 6066 section 3: a DNS host name, no address; RFC 1123 section 2.1 for its letters.
fn server_name(value: &Value) -> Result<String, String> {
    let name = value.as_str().unwrap_or_default();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let address = name.parse::<std::net::IpAddr>().is_ok();
    if name.len() <= 253 && name.split('.').all(label) && !address {
        Ok(name.into())
    } else {
        Err("expected a host name such as \"meter.example\" (no address: RFC 6066 section 3)"
            .into())
    }
}

/// RFC 4279 section 5.3: every implementation takes identities of up to 128 octets.
fn psk_identity_bytes(value: &Value) -> Result<u16, String> {
    reader::integer(value, 1..=128).map(|number| number as u16)
}

fn initcwnd(value: &Value) -> Result<u8, String> {
    reader::integer(value, 1..=255).map(|number| number as u8)
}

/// RFC 7252 section 4.8 has 2 s; below 1 s it asks for congestion control of another kind (4.8.1).
fn ack_timeout(value: &Value) -> Result<Nanos, String> {
    let timeout = reader::duration(value)?;
    match timeout.0 {
        1_000_000..=60_000_000_000 => Ok(timeout),
        _ => Err("expected a time from 1 ms to 60 s".into()),
    }
}

/// As percent; RFC 7252 section 4.8.1: not below 1.
fn ack_random_factor(value: &Value) -> Result<u16, String> {
    let factor = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
    match factor {
        Some(factor) if (1.0..=10.0).contains(&factor) => Ok((factor * 100.0).round() as u16),
        _ => Err("expected a factor from 1 to 10, such as 1.5".into()),
    }
}

fn max_retransmit(value: &Value) -> Result<u8, String> {
    reader::integer(value, 0..=20).map(|number| number as u8)
}

fn request_path(value: &Value) -> Result<String, String> {
    let path = value.as_str().unwrap_or_default();
    let plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if path.starts_with('/') && plain && path.len() <= 2048 {
        Ok(path.into())
    } else {
        Err("expected a path of at most 2048 B that begins with / and has no spaces".into())
    }
}

/// 16 MiB: beyond that, the time to the response's first byte has long ceased to depend on it.
fn body(value: &Value) -> Result<u32, String> {
    const MOST: u64 = 16 << 20;
    let size = reader::size(value)?;
    match u32::try_from(size.0) {
        Ok(bytes) if size.0 <= MOST => Ok(bytes),
        _ => Err(format!("expected at most {}", crate::units::ByteCount(MOST))),
    }
}

/// A device that rests for longer than a day computes as one that has rested for a second.
fn pause(value: &Value) -> Result<Nanos, String> {
    const MOST: Nanos = Nanos::from_millis(24 * 3_600_000);
    match reader::duration(value)? {
        Nanos(0) => {
            Err("expected more than 0: leave it out for connections one upon another".into())
        }
        pause if pause > MOST => Err(format!("expected at most {MOST}")),
        pause => Ok(pause),
    }
}

fn workers(value: &Value) -> Result<u32, String> {
    reader::integer(value, 1..=1_024).map(|number| number as u32)
}

fn concurrent(value: &Value) -> Result<u32, String> {
    // One address has so many ports for connections to one server.
    reader::integer(value, 1..=65_535).map(|number| number as u32)
}

/// Samples a second; the probes pause for whole microseconds.
fn sample_rate(value: &Value) -> Result<u32, String> {
    reader::integer(value, 1..=100_000).map(|number| number as u32)
}

/// How a value was written, for tables and labels.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Table(_) => match quantity::loss(value) {
            Ok(loss) => loss.to_string(),
            Err(_) => show(value),
        },
        other => show(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_of_each_setting() {
        for setting in SETTINGS {
            let (section, key) = setting.path.split_once('.').unwrap();
            assert!(SECTIONS.contains(&section), "{}", setting.path);
            assert!(keys(section).any(|known| known == key));
            assert!(std::ptr::eq(find(setting.path).unwrap(), setting));
        }
    }
}
