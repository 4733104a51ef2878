// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The link's configuration: parsed once, and only what can run gets through.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use warifu_model::{BitsPerSecond, Link, Loss, Nanos, Probability};

/// The least MTU that a case may have.
const MTU_MIN: u32 = Link::LEAST_MTU as u32;
/// The longest IPv4 packet (RFC 791 section 3.1).
const MTU_MAX: u32 = 65_535;
/// Longest delay and jitter, an hour: beyond it a unit was probably mistaken.
const DELAY_MAX: Nanos = Nanos::from_secs(3_600);
/// Linux keeps an interface's name in `IFNAMSIZ` = 16 bytes with a final zero.
const DEVICE_NAME_MAX: usize = 15;
/// Linux `TCP_INIT_CWND` is 10; a route takes any number, and beyond this the queue of the device
/// (see `tun`) would overflow.
const INITCWND_MAX: u32 = 1_000;

/// A link between two network namespaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Namespace of end A, as in `ip netns list`.
    pub name_a: String,
    /// Namespace of end B.
    pub name_b: String,
    /// Address of end A; the two ends share a /24.
    #[serde(default = "default_address_a")]
    pub address_a: Ipv4Addr,
    /// Address of end B.
    #[serde(default = "default_address_b")]
    pub address_b: Ipv4Addr,
    /// Name of the TUN device in namespace A.
    #[serde(default = "default_device")]
    pub device_a: String,
    /// Name of the TUN device in namespace B.
    #[serde(default = "default_device")]
    pub device_b: String,
    /// Longest IP packet, in bytes.
    #[serde(default = "default_mtu")]
    pub mtu: u32,
    /// Seed of the loss and jitter streams.
    #[serde(default)]
    pub seed: u64,
    /// Congestion control of the routes (`congctl`); absent: the kernel's default.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// Initial congestion window of the routes, in segments; absent: the kernel's default.
    #[serde(default)]
    pub initcwnd: Option<u32>,
    /// Ask for SCHED_FIFO for the forwarding thread and locked memory for the process (it stays
    /// locked after the link is gone); the report says whether both were granted.
    #[serde(default = "default_true")]
    pub realtime: bool,
    /// A packet handed over later than this after its due time counts as late.
    #[serde(default = "default_lateness_bound", rename = "lateness_bound_ns")]
    pub lateness_bound: Nanos,
    /// The largest share of late packets with which a report is still accepted, from 0 to 1.
    #[serde(default = "default_late_fraction_max")]
    pub late_fraction_max: Probability,
    /// A new file for what became of each packet (see `packet_log`); absent: none.
    #[serde(default)]
    pub packet_log: Option<PathBuf>,
    /// The impairments.
    #[serde(default)]
    pub link: LinkConfig,
}

/// The impairments, which may change while the link is up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkConfig {
    /// Propagation delay from A to B.
    #[serde(rename = "delay_a_to_b_ns")]
    pub delay_a_to_b: Nanos,
    /// Propagation delay from B to A.
    #[serde(rename = "delay_b_to_a_ns")]
    pub delay_b_to_a: Nanos,
    /// Quantiles of the extra one-way delay at evenly spaced probabilities from 0 to 1, ascending;
    /// empty for none.
    #[serde(rename = "jitter_ns")]
    pub jitter: Vec<Nanos>,
    /// Whether a packet with little jitter waits for those before it, as on most real links.
    pub keep_order: bool,
    /// Rate from A to B in bits of IP packet per second; `null` for no limit.
    #[serde(rename = "rate_a_to_b_bps")]
    pub rate_a_to_b: Option<BitsPerSecond>,
    /// Rate from B to A.
    #[serde(rename = "rate_b_to_a_bps")]
    pub rate_b_to_a: Option<BitsPerSecond>,
    /// Bytes that each direction's drop-tail queue holds, the packet in transmission included;
    /// `null` for no limit.
    pub queue_bytes: Option<u64>,
    /// Packets that each direction's drop-tail queue holds, the one in transmission included;
    /// `null` for no limit.
    pub queue_packets: Option<u64>,
    /// Random loss.
    pub loss: Loss,
    /// Packets from A to B to drop, by index among those that carry TCP, from 0; instead of random
    /// loss.
    pub drop_script_a_to_b: Vec<u64>,
    /// The same from B to A.
    pub drop_script_b_to_a: Vec<u64>,
    /// Packets from A to B to hold back, by the same index, each with the time that it takes beyond
    /// the delay. Without `keep_order` those sent meanwhile overtake it.
    #[serde(rename = "hold_script_a_to_b_ns")]
    pub hold_script_a_to_b: Vec<(u64, Nanos)>,
    /// The same from B to A.
    #[serde(rename = "hold_script_b_to_a_ns")]
    pub hold_script_b_to_a: Vec<(u64, Nanos)>,
}

impl Default for LinkConfig {
    /// A perfect link: no delay, no limit, no loss.
    fn default() -> LinkConfig {
        LinkConfig {
            delay_a_to_b: Nanos::ZERO,
            delay_b_to_a: Nanos::ZERO,
            jitter: Vec::new(),
            keep_order: true,
            rate_a_to_b: None,
            rate_b_to_a: None,
            queue_bytes: None,
            queue_packets: None,
            loss: Loss::default(),
            drop_script_a_to_b: Vec::new(),
            drop_script_b_to_a: Vec::new(),
            hold_script_a_to_b: Vec::new(),
            hold_script_b_to_a: Vec::new(),
        }
    }
}

/// A command on the control channel: one JSON object a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Report on the window since the last report, and open a new one.
    Report {},
    /// Flush what is under way, restart the random streams and scripts, and go on with these
    /// impairments in a new window.
    Set {
        /// The new impairments; keys left out are those of a perfect link, not those that were.
        link: Box<LinkConfig>,
        /// The new seed; absent: the one that was in force.
        #[serde(default)]
        seed: Option<u64>,
    },
    /// Report once more and take the link down.
    Stop {},
}

/// A setting that cannot run: the key, what it is, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl Config {
    /// A perfect link between two namespaces, all else at its default.
    #[must_use]
    pub fn between(name_a: &str, name_b: &str) -> Config {
        Config {
            name_a: name_a.to_owned(),
            name_b: name_b.to_owned(),
            address_a: default_address_a(),
            address_b: default_address_b(),
            device_a: default_device(),
            device_b: default_device(),
            mtu: default_mtu(),
            seed: 0,
            congestion_control: None,
            initcwnd: None,
            realtime: true,
            lateness_bound: default_lateness_bound(),
            late_fraction_max: default_late_fraction_max(),
            packet_log: None,
            link: LinkConfig::default(),
        }
    }

    /// Parses and checks a configuration in JSON.
    ///
    /// # Errors
    /// Names the first key that is unknown, of the wrong type or out of range, and what was
    /// expected. Never panics.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        let config: Config = from_json(text)?;
        config.check()?;
        Ok(config)
    }

    /// Checks the values of a configuration made in code.
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn check(&self) -> Result<(), ConfigError> {
        check_namespace("name_a", &self.name_a)?;
        check_namespace("name_b", &self.name_b)?;
        demand(self.name_a != self.name_b, || {
            format!("name_b is {:?}, the same as name_a: expected two namespaces", self.name_b)
        })?;
        self.check_addresses()?;
        check_device("device_a", &self.device_a)?;
        check_device("device_b", &self.device_b)?;
        demand((MTU_MIN..=MTU_MAX).contains(&self.mtu), || {
            format!("mtu is {}: expected {MTU_MIN} to {MTU_MAX} bytes", self.mtu)
        })?;
        if let Some(name) = &self.congestion_control {
            let plain = !name.is_empty() && name.len() <= DEVICE_NAME_MAX;
            demand(
                plain && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'),
                || {
                    format!(
                        "congestion_control is {name:?}: expected a kernel algorithm's name such \
                         as \"cubic\""
                    )
                },
            )?;
        }
        if let Some(initcwnd) = self.initcwnd {
            demand((1..=INITCWND_MAX).contains(&initcwnd), || {
                format!("initcwnd is {initcwnd}: expected 1 to {INITCWND_MAX} segments")
            })?;
        }
        check_probability("late_fraction_max", self.late_fraction_max)?;
        if let Some(path) = &self.packet_log {
            demand(path.file_name().is_some(), || {
                format!("packet_log is {path:?}: expected the name of a new file")
            })?;
        }
        self.link.check()
    }

    fn check_addresses(&self) -> Result<(), ConfigError> {
        for (key, address) in [("address_a", self.address_a), ("address_b", self.address_b)] {
            let host = address.octets()[3];
            let usable =
                host != 0 && host != 255 && !address.is_multicast() && !address.is_loopback();
            demand(usable && address.octets()[0] != 0 && address.octets()[0] < 240, || {
                format!("{key} is {address}: expected a host address such as 10.9.0.1")
            })?;
        }
        demand(
            self.address_a.octets()[..3] == self.address_b.octets()[..3]
                && self.address_a != self.address_b,
            || {
                let (a, b) = (self.address_a, self.address_b);
                format!("address_b is {b}: expected another address in the /24 of address_a ({a})")
            },
        )
    }
}

impl LinkConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn check(&self) -> Result<(), ConfigError> {
        let delays = [
            ("link.delay_a_to_b_ns", self.delay_a_to_b),
            ("link.delay_b_to_a_ns", self.delay_b_to_a),
        ];
        let longest = self.jitter.last().copied().unwrap_or_default();
        for (key, Nanos(value)) in delays.into_iter().chain([("link.jitter_ns", longest)]) {
            demand(value <= DELAY_MAX.0, || {
                let most = DELAY_MAX.0;
                format!("{key} is {value}: expected nanoseconds, at most {most} (an hour)")
            })?;
        }
        if let Some(index) = self.jitter.windows(2).position(|pair| pair[1] < pair[0]) {
            let (low, high) = (self.jitter[index + 1].0, self.jitter[index].0);
            return Err(ConfigError(format!(
                "link.jitter_ns[{}] is {low}, below the {high} before it: expected quantiles in \
                 ascending order",
                index + 1
            )));
        }
        let rates = [
            ("link.rate_a_to_b_bps", self.rate_a_to_b),
            ("link.rate_b_to_a_bps", self.rate_b_to_a),
        ];
        for (key, rate) in rates {
            demand(rate != Some(BitsPerSecond(0)), || {
                format!("{key} is 0: expected 1 bit/s or more, or null for no limit")
            })?;
        }
        for (key, limit) in
            [("link.queue_packets", self.queue_packets), ("link.queue_bytes", self.queue_bytes)]
        {
            demand(limit != Some(0), || {
                format!(
                    "{key} is 0, which would pass nothing: expected 1 or more, or null for no limit"
                )
            })?;
        }
        self.check_loss()
    }

    fn check_loss(&self) -> Result<(), ConfigError> {
        match self.loss {
            Loss::None => {}
            Loss::Independent { probability } => {
                check_probability("link.loss.probability", probability)?
            }
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                check_probability("link.loss.good_to_bad", good_to_bad)?;
                check_probability("link.loss.bad_to_good", bad_to_good)?;
                check_probability("link.loss.loss_good", loss_good)?;
                check_probability("link.loss.loss_bad", loss_bad)?;
            }
        }
        let scripted = !self.drop_script_a_to_b.is_empty() || !self.drop_script_b_to_a.is_empty();
        demand(!scripted || self.loss == Loss::None, || {
            "link.loss is set beside a drop script: expected one of the two; leave loss out \
             to drop by script"
                .to_owned()
        })
    }
}

impl Command {
    /// Parses and checks one control line.
    ///
    /// # Errors
    /// As [`Config::parse`]. Never panics.
    pub fn parse(line: &str) -> Result<Command, ConfigError> {
        let command: Command = from_json(line)?;
        if let Command::Set { link, .. } = &command {
            link.check()?;
        }
        Ok(command)
    }
}

fn from_json<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, ConfigError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let problem = error.into_inner();
        ConfigError(if path == "." { problem.to_string() } else { format!("{path}: {problem}") })
    })?;
    deserializer.end().map_err(|error| {
        ConfigError(format!("{error}: expected one JSON object and nothing after it"))
    })?;
    Ok(value)
}

fn demand(holds: bool, message: impl FnOnce() -> String) -> Result<(), ConfigError> {
    if holds { Ok(()) } else { Err(ConfigError(message())) }
}

fn check_probability(key: &str, probability: Probability) -> Result<(), ConfigError> {
    let checked = Probability::new(probability.0);
    checked.map(|_| ()).map_err(|why| ConfigError(format!("{key} is {}: {why}", probability.0)))
}

/// A namespace's name becomes a file name under /run/netns.
fn check_namespace(key: &str, name: &str) -> Result<(), ConfigError> {
    let plain = !name.is_empty()
        && name.len() <= 255
        && name != "."
        && name != ".."
        && !name.starts_with('-');
    demand(plain && !name.contains(['/', '\0', '\n']), || {
        format!(
            "{key} is {name:?}: expected the name of a network namespace, as `ip netns list` \
             prints it"
        )
    })
}

fn check_device(key: &str, name: &str) -> Result<(), ConfigError> {
    let plain = !name.is_empty() && name.len() <= DEVICE_NAME_MAX;
    demand(
        plain
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
            && !name.starts_with('-'),
        || {
            format!(
                "{key} is {name:?}: expected 1 to {DEVICE_NAME_MAX} letters, digits, - or _, such \
                 as \"tun0\""
            )
        },
    )
}

fn default_address_a() -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, 1)
}

fn default_address_b() -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, 2)
}

fn default_device() -> String {
    "tun0".to_owned()
}

fn default_mtu() -> u32 {
    1500
}

fn default_true() -> bool {
    true
}

/// Half a millisecond, the precision asked of the link's 99th percentile.
fn default_lateness_bound() -> Nanos {
    Nanos::from_micros(500)
}

/// One packet in a thousand: a tenth of what would move a 99th percentile.
fn default_late_fraction_max() -> Probability {
    Probability(0.001)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mistake(text: &str) -> String {
        Config::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn namespaces_alone_give_a_perfect_link() {
        let config = Config::parse(r#"{"name_a":"a","name_b":"b"}"#).unwrap();
        assert_eq!(config, Config::between("a", "b"));
    }

    #[test]
    fn full_configuration_round_trip() {
        let text = r#"{"name_a":"a","name_b":"b","address_a":"10.1.2.3","address_b":"10.1.2.4",
            "device_a":"left","device_b":"right","mtu":1280,"seed":18446744073709551615,
            "congestion_control":"cubic","initcwnd":10,"realtime":false,"lateness_bound_ns":1,
            "late_fraction_max":0,"packet_log":"packets",
            "link":{"delay_a_to_b_ns":1,"delay_b_to_a_ns":2,
            "jitter_ns":[0,5,5],"keep_order":false,"rate_a_to_b_bps":3,"rate_b_to_a_bps":null,
            "queue_bytes":4,"queue_packets":5,"loss":{"kind":"gilbert_elliott","good_to_bad":0.1,
            "bad_to_good":0.2,"loss_good":0,"loss_bad":1}}}"#;
        let config = Config::parse(text).unwrap();
        let again = serde_json::to_string(&config).unwrap();
        assert_eq!(Config::parse(&again).unwrap(), config);
        assert_eq!(config.link.rate_a_to_b, Some(BitsPerSecond(3)));
    }

    #[test]
    fn mistakes_name_key_and_fix() {
        let with = |rest: &str| mistake(&format!(r#"{{"name_a":"a","name_b":"b",{rest}}}"#));
        for (rest, expected) in [
            (
                r#""link":{"loss":{"kind":"independent","probability":1.2}}"#,
                "link.loss.probability is 1.2: expected a probability from 0 to 1",
            ),
            (
                r#""link":{"delay_ns":3}"#,
                "unknown field `delay_ns`, expected one of `delay_a_to_b_ns`",
            ),
            (r#""link":{"loss":{"kind":"none","probability":1}}"#, "unknown field `probability`"),
            (
                r#""link":{"loss":{"kind":"bursty"}}"#,
                "unknown variant `bursty`, expected one of `none`",
            ),
            (r#""link":{"rate_a_to_b_bps":0}"#, "link.rate_a_to_b_bps: expected a rate above 0"),
            (
                r#""link":{"delay_a_to_b_ns":-1}"#,
                "link.delay_a_to_b_ns: invalid value: integer `-1`",
            ),
            (
                r#""link":{"delay_b_to_a_ns":99999999999999}"#,
                "link.delay_b_to_a_ns is 99999999999999: expected nanoseconds",
            ),
            (r#""link":{"jitter_ns":[1,0]}"#, "link.jitter_ns[1] is 0, below the 1 before it"),
            (r#""link":{"queue_packets":0}"#, "link.queue_packets is 0"),
            (
                r#""link":{"drop_script_a_to_b":[0],
                    "loss":{"kind":"independent","probability":0.1}}"#,
                "beside a drop script",
            ),
            (r#""mtu":20"#, "mtu is 20: expected 576 to 65535 bytes"),
            (
                r#""address_b":"10.9.1.2""#,
                "address_b is 10.9.1.2: expected another address in the /24 of address_a",
            ),
            (r#""address_b":"10.9.0.1""#, "expected another address"),
            (r#""address_a":"10.9.0.0""#, "address_a is 10.9.0.0: expected a host address"),
            (r#""device_a":"a device""#, "device_a is \"a device\""),
            (r#""congestion_control":"cubic mtu 9""#, "congestion_control is"),
            (r#""initcwnd":0"#, "initcwnd is 0"),
            (r#""late_fraction_max":2"#, "late_fraction_max is 2"),
            (r#""packet_log":"""#, "packet_log is \"\": expected the name of a new file"),
        ] {
            let message = with(rest);
            assert!(message.contains(expected), "{rest}: {message}");
        }
        assert!(mistake(r#"{"name_a":"../x","name_b":"b"}"#).contains("name_a"));
        assert!(mistake(r#"{"name_a":"a","name_b":"a"}"#).contains("two namespaces"));
        assert!(mistake("{}").contains("missing field `name_a`"));
        assert!(mistake(r#"{"name_a":"a","name_b":"b"} x"#).contains("nothing after it"));
    }

    #[test]
    fn control_lines_parse_or_fail() {
        assert_eq!(Command::parse(r#"{"command":"report"}"#), Ok(Command::Report {}));
        assert_eq!(Command::parse(r#"{"command":"stop"}"#), Ok(Command::Stop {}));
        let set =
            Command::parse(r#"{"command":"set","link":{"delay_a_to_b_ns":5},"seed":7}"#).unwrap();
        let link = Box::new(LinkConfig { delay_a_to_b: Nanos(5), ..LinkConfig::default() });
        assert_eq!(set, Command::Set { link, seed: Some(7) });
        for line in [
            "",
            "set",
            r#"{"command":"halt"}"#,
            r#"{"command":"stop","now":1}"#,
            r#"{"command":"set"}"#,
            r#"{"command":"set","link":{"queue_bytes":0}}"#,
        ] {
            assert!(Command::parse(line).is_err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = Config::parse(&text);
            let _ = Command::parse(&text);
        }

        #[test]
        fn no_json_panics(key in "[a-z_]{0,12}", number: f64, other: u64) {
            let set = |link: String| format!(r#"{{"command":"set","link":{{{link}}}}}"#);
            for text in [
                format!(r#"{{"name_a":"a","name_b":"b","{key}":{number:e}}}"#),
                set(format!(r#""jitter_ns":[{other},{other}],"{key}":{number:e}"#)),
                set(format!(r#""loss":{{"kind":"independent","probability":{number:e}}}"#)),
            ] {
                let _ = Config::parse(&text);
                let _ = Command::parse(&text);
            }
        }
    }
}
