// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A TCP profile: the constants and settings of a Linux kernel's TCP.

use toml::Value;

use super::figure::{FigureOf, Figures, Input, Provenance};
use super::heading::heading;
use super::kernel_release::KernelRelease;
use crate::error::Error;
use crate::reader::{self, Mistakes, Section};
use crate::units::Nanos;

const LEAST_TIMER: Nanos = Nanos::from_millis(1);
const LONGEST_TIMER: Nanos = Nanos::from_millis(3_600_000);

macro_rules! tcp_profile {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $unit:literal, $read:expr;)+) => {
        /// The constants and settings of a Linux kernel's TCP, by the names that its source and
        /// its sysctls use. Every field is stated by the profile, with its source.
        #[derive(Clone, Debug, PartialEq)]
        pub struct TcpProfile {
            /// Its name, the file's without ending, for example `linux-6.18`.
            pub name: String,
            /// The file it was read from, for errors.
            pub file: String,
            /// What it is.
            pub description: String,
            /// The kernel whose TCP it is, where the profile says so: what can be measured with it
            /// depends on the running kernel.
            pub kernel: Option<KernelRelease>,
            $($(#[$doc])* pub $field: $type,)+
            figures: Vec<Input>,
        }

        fn read(
            name: &str,
            table: &toml::Table,
            file: &str,
            mistakes: &Mistakes<'_>,
        ) -> Option<TcpProfile> {
            let root = Section::root(table, mistakes);
            let description = heading(&root, name);
            let kernel = root.read("kernel", kernel);
            let around = Provenance::read(&root, &Provenance::NONE);
            let mut figures = Figures::new(FigureOf::Tcp, name, &root, &around);
            $(let $field: Option<$type> = figures.need(stringify!($field), $unit, $read);)+
            let inputs = figures.inputs;
            root.refuse_unknown();
            if mistakes.any() {
                return None;
            }
            Some(TcpProfile {
                name: name.into(),
                file: file.into(),
                description,
                kernel,
                $($field: $field?,)+
                figures: inputs,
            })
        }
    };
}

tcp_profile! {
    /// CONFIG_HZ: jiffies a second, the grain of every TCP timer but the high-resolution ones.
    hz: u32 = "1/s", |value| number(value, 24..=1_000);
    /// TCP_TIMEOUT_INIT: the retransmission timeout of SYN and SYN-ACK.
    tcp_timeout_init: Nanos = "ns", timer;
    /// How many SYN timeouts pass before they begin to double; 0 where they always double.
    tcp_syn_linear_timeouts: u8 = "1", |value| byte(value, 0..=127);
    /// How many SYNs are sent again before connect() fails.
    tcp_syn_retries: u8 = "1", |value| byte(value, 1..=127);
    /// How many SYN-ACKs are sent again.
    tcp_synack_retries: u8 = "1", |value| byte(value, 0..=127);
    /// The least term added to the smoothed round-trip time in a retransmission timeout.
    tcp_rto_min: Nanos = "ns", timer;
    /// The longest retransmission timeout.
    tcp_rto_max: Nanos = "ns", timer;
    /// How many timeouts end an established connection.
    tcp_retries2: u8 = "1", |value| byte(value, 0..=127);
    /// TCP_TIMEOUT_MIN: the shortest timer of a tail loss probe or a reordering window.
    tcp_timeout_min: Nanos = "ns", timer;
    /// TCP_DELACK_MIN: the shortest delay of an acknowledgement.
    tcp_delack_min: Nanos = "ns", timer;
    /// TCP_DELACK_MAX: the longest delay of an acknowledgement.
    tcp_delack_max: Nanos = "ns", timer;
    /// TCP_ATO_MIN: the first estimate of the time between segments.
    tcp_ato_min: Nanos = "ns", timer;
    /// TCP_MAX_QUICKACKS: how many segments at a connection's start are acknowledged at once.
    tcp_max_quickacks: u8 = "1", |value| byte(value, 0..=255);
    /// How many turns of the conversation make a connection interactive, which ends quick
    /// acknowledgements.
    tcp_pingpong_thresh: u8 = "1", |value| byte(value, 1..=255);
    /// 3 or 4: tail loss probes on; 0: off.
    tcp_early_retrans: u8 = "1", |value| byte(value, 0..=4);
    /// Bit 0: RACK; bit 1: its reordering window stays as it is; bit 2: no window by
    /// duplicate acknowledgements.
    tcp_recovery: u8 = "1", |value| byte(value, 0..=7);
    /// 0: no forward RTO recovery; else on.
    tcp_frto: u8 = "1", |value| byte(value, 0..=2);
    /// Duplicate acknowledgements that mean a loss where nothing else is known.
    tcp_reordering: u8 = "1", |value| byte(value, 1..=127);
    /// Timestamps (RFC 7323), 12 B a segment.
    tcp_timestamps: bool = "", reader::boolean;
    /// Selective acknowledgements (RFC 2018).
    tcp_sack: bool = "", reader::boolean;
    /// Duplicate selective acknowledgements (RFC 2883), which undo a needless reduction.
    tcp_dsack: bool = "", reader::boolean;
    /// Whether an idle connection's window shrinks.
    tcp_slow_start_after_idle: bool = "", reader::boolean;
    /// CUBIC's window after a loss, in 1024ths.
    cubic_beta: u32 = "1/1024", |value| number(value, 1..=1023);
    /// CUBIC's C, in 1024ths times 10 (bic_scale).
    cubic_bic_scale: u32 = "1", |value| number(value, 1..=1023);
}

impl TcpProfile {
    /// Reads a profile; `file` is the name to give in errors.
    pub fn parse(name: &str, text: &str, file: &str) -> Result<TcpProfile, Error> {
        let mistakes = Mistakes::new(file);
        let profile = mistakes.parse(text).and_then(|table| read(name, &table, file, &mistakes));
        mistakes.first_or(profile)
    }

    /// The length of a jiffy.
    pub fn jiffy(&self) -> Nanos {
        Nanos(1_000_000_000 / u64::from(self.hz))
    }

    /// Its figures.
    pub fn figures(&self) -> &[Input] {
        &self.figures
    }
}

fn kernel(value: &Value) -> Result<KernelRelease, String> {
    value.as_str().unwrap_or_default().parse()
}

/// A time that a timer can have: what is shorter than a tick or longer than an hour is a mistake.
fn timer(value: &Value) -> Result<Nanos, String> {
    let time = reader::duration(value)?;
    if (LEAST_TIMER..=LONGEST_TIMER).contains(&time) {
        return Ok(time);
    }
    Err(format!("is {time}: expected a time from 1 ms to 1 h"))
}

fn number(value: &Value, range: std::ops::RangeInclusive<u64>) -> Result<u32, String> {
    reader::integer(value, range).map(|number| number as u32)
}

fn byte(value: &Value, range: std::ops::RangeInclusive<u64>) -> Result<u8, String> {
    reader::integer(value, range).map(|number| number as u8)
}
