// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A case as the columns of a results table.

use crate::case::Case;
use crate::keyword::Keyword;
use crate::quantities::show_jitter;
use crate::units::BitsPerSecond;

/// The names of [`Case::columns`], in its order.
pub const CASE_COLUMNS: [&str; 31] = [
    "device",
    "server",
    "key_store",
    "session_open",
    "link",
    "rtt_ns",
    "jitter",
    "keep_order",
    "rate_up_bps",
    "rate_down_bps",
    "queue_packets",
    "mtu",
    "loss",
    "protocol",
    "tls",
    "session",
    "authentication",
    "group",
    "certificate",
    "chain_length",
    "cipher_suite",
    "key_share",
    "server_name",
    "kernel",
    "congestion_control",
    "initcwnd",
    "nagle",
    "pattern",
    "path",
    "response_body",
    "concurrent",
];

impl Case {
    /// The case as columns, name and value, in the order of [`CASE_COLUMNS`]; a closed list, so
    /// that the results of all studies can be joined. An unlimited rate and an absent server
    /// name are empty.
    pub fn columns(&self) -> Vec<(&'static str, String)> {
        let Case { device, server, key_store, link, stack, pattern } = self;
        let rate = |rate: Option<BitsPerSecond>| rate.map_or(String::new(), |r| r.0.to_string());
        let values: [String; CASE_COLUMNS.len()] = [
            device.profile.clone(),
            match server.workers {
                1 => server.profile.clone(),
                workers => format!("{}, {workers} workers", server.profile),
            },
            key_store.profile.clone(),
            key_store.session_open.to_string(),
            link.profile.clone(),
            link.rtt.0.to_string(),
            show_jitter(&link.jitter),
            link.keep_order.to_string(),
            rate(link.rate_up),
            rate(link.rate_down),
            link.queue_packets.to_string(),
            link.mtu.to_string(),
            link.loss.to_string(),
            stack.protocol.name().into(),
            stack.tls.name().into(),
            stack.session.name().into(),
            stack.authentication.name().into(),
            stack.group.name().into(),
            stack.certificate.name().into(),
            stack.chain_length.to_string(),
            stack.cipher_suite.name().into(),
            stack.key_share.name().into(),
            stack.server_name.clone().unwrap_or_default(),
            stack.kernel.clone(),
            stack.congestion_control.name().into(),
            stack.initcwnd.to_string(),
            stack.nagle.to_string(),
            pattern.kind.name().into(),
            pattern.path.clone(),
            pattern.response_body.to_string(),
            pattern.concurrent.to_string(),
        ];
        CASE_COLUMNS.into_iter().zip(values).collect()
    }
}
