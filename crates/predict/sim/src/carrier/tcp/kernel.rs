// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A kernel profile in the units that the TCP machine computes in.

use warifu_model::{Error, Nanos, TcpProfile};

use crate::clock::Jiffy;

/// What TCP must know of its kernel. Times in jiffies or microseconds, as the kernel has them.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// The tick.
    pub jiffy: Jiffy,
    /// `TCP_TIMEOUT_INIT`, jiffies.
    pub timeout_init: u32,
    /// `tcp_syn_linear_timeouts`.
    pub syn_linear_timeouts: u8,
    /// `tcp_syn_retries`.
    pub syn_retries: u8,
    /// `tcp_synack_retries`.
    pub synack_retries: u8,
    /// How long after its first copy data is given up, ms (`tcp_model_timeout` of `tcp_retries2`).
    pub data_timeout_ms: u32,
    /// `tcp_rto_min_us`.
    pub rto_min_us: u32,
    /// `tcp_rto_max_ms`, jiffies.
    pub rto_max: u32,
    /// `TCP_TIMEOUT_MIN_US`.
    pub timeout_min_us: u32,
    /// `TCP_DELACK_MIN`, jiffies.
    pub delack_min: u32,
    /// `TCP_DELACK_MAX`, jiffies.
    pub delack_max: u32,
    /// `TCP_ATO_MIN`, jiffies.
    pub ato_min: u32,
    /// `TCP_MAX_QUICKACKS`.
    pub max_quickacks: u32,
    /// `tcp_pingpong_thresh`.
    pub pingpong_thresh: u8,
    /// Whether tail loss probes are on (`tcp_early_retrans`).
    pub tail_loss_probe: bool,
    /// Whether RACK keeps its reordering window at its least (`TCP_RACK_STATIC_REO_WND`).
    pub rack_static_window: bool,
    /// Whether RACK ignores the count of duplicate acknowledgements (`TCP_RACK_NO_DUPTHRESH`).
    pub rack_no_dupthresh: bool,
    /// `tcp_frto`.
    pub frto: bool,
    /// `tcp_reordering`.
    pub reordering: u32,
    /// `tcp_dsack`.
    pub dsack: bool,
    /// `tcp_slow_start_after_idle`.
    pub slow_start_after_idle: bool,
    /// CUBIC's beta, 1024ths.
    pub cubic_beta: u32,
    /// CUBIC's `bic_scale`.
    pub cubic_scale: u32,
}

impl Kernel {
    /// Takes a profile's figures over.
    ///
    /// # Errors
    /// The profile turns off what the simulated TCP always does.
    pub(crate) fn new(profile: &TcpProfile) -> Result<Kernel, Error> {
        let always = [
            ("tcp_timestamps", profile.tcp_timestamps),
            ("tcp_sack", profile.tcp_sack),
            ("tcp_recovery", profile.tcp_recovery & 1 == 1),
        ];
        if let Some((key, _)) = always.iter().find(|(_, on)| !on) {
            let message = "is off: the simulator has no TCP without it, so turn it on";
            return Err(Error::new(&profile.file, *key, message));
        }
        let jiffy = Jiffy::new(profile.jiffy());
        let jiffies = |time: Nanos| jiffy.ceil_us(us(time));
        Ok(Kernel {
            timeout_init: jiffies(profile.tcp_timeout_init),
            syn_linear_timeouts: profile.tcp_syn_linear_timeouts,
            syn_retries: profile.tcp_syn_retries,
            synack_retries: profile.tcp_synack_retries,
            data_timeout_ms: data_timeout_ms(profile),
            rto_min_us: us(profile.tcp_rto_min) as u32,
            rto_max: jiffies(profile.tcp_rto_max),
            timeout_min_us: us(profile.tcp_timeout_min) as u32,
            delack_min: jiffies(profile.tcp_delack_min),
            delack_max: jiffies(profile.tcp_delack_max),
            ato_min: jiffies(profile.tcp_ato_min),
            max_quickacks: u32::from(profile.tcp_max_quickacks),
            pingpong_thresh: profile.tcp_pingpong_thresh,
            tail_loss_probe: profile.tcp_early_retrans >= 3,
            rack_static_window: profile.tcp_recovery & 2 != 0,
            rack_no_dupthresh: profile.tcp_recovery & 4 != 0,
            frto: profile.tcp_frto != 0,
            reordering: u32::from(profile.tcp_reordering),
            dsack: profile.tcp_dsack,
            slow_start_after_idle: profile.tcp_slow_start_after_idle,
            cubic_beta: profile.cubic_beta,
            cubic_scale: profile.cubic_bic_scale,
            jiffy,
        })
    }

    /// Linux 6.18 with HZ = 250 and its default settings, for tests.
    #[cfg(test)]
    pub(crate) fn linux() -> Kernel {
        Kernel {
            jiffy: Jiffy::new(Nanos::from_millis(4)),
            timeout_init: 250,
            syn_linear_timeouts: 4,
            syn_retries: 6,
            synack_retries: 5,
            data_timeout_ms: 924_600,
            rto_min_us: 200_000,
            rto_max: 30_000,
            timeout_min_us: 2_000,
            delack_min: 10,
            delack_max: 50,
            ato_min: 10,
            max_quickacks: 16,
            pingpong_thresh: 1,
            tail_loss_probe: true,
            rack_static_window: false,
            rack_no_dupthresh: false,
            frto: true,
            reordering: 3,
            dsack: true,
            slow_start_after_idle: true,
            cubic_beta: 717,
            cubic_scale: 41,
        }
    }
}

/// The time that `tcp_retries2` timeouts take that begin with the shortest one and double up to the
/// longest (`tcp_model_timeout`).
fn data_timeout_ms(profile: &TcpProfile) -> u32 {
    let (least, most) = (profile.tcp_rto_min.0, profile.tcp_rto_max.0);
    let doublings = (most / least.max(1)).max(1).ilog2();
    let retries = u32::from(profile.tcp_retries2);
    let doubling = ((2_u64 << retries.min(doublings)) - 1).saturating_mul(least);
    let constant = u64::from(retries.saturating_sub(doublings)).saturating_mul(most);
    u32::try_from(doubling.saturating_add(constant) / 1_000_000).unwrap_or(u32::MAX)
}

fn us(time: Nanos) -> u64 {
    time.0 / 1_000
}
