// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From what a study states to a case with every choice made, or to what does not go together.

mod coap;
mod dds;
mod tls;

use super::draft::Draft;
use crate::case::{
    Case, CongestionControl, Host, Https, KeyStoreChoice, LONGEST_BODY, Link, Pattern, PatternKind,
    Protocol, Server, Session, Stack, Tcp,
};
use crate::keyword::Keyword;
use crate::profile::{Catalog, ProfileKind};
use crate::units::ByteCount;

/// Both ends run this machine where a study names no other.
const HOST: &str = "this-host";
/// The key lies in memory where a study names no key store.
pub(super) const KEY_STORE: &str = "software";
/// The emulated link without delay.
const LINK: &str = "loopback";
/// The TCP of the lab's kernel.
const TCP: &str = "linux-6.18";
/// Samples a second of a stream, where a study names no other.
const RATE: u32 = 100;
/// The response of papers/2 section 3.4.
const RESPONSE_BODY: u32 = 846;

/// A setting that does not go with another: its path, and what is wrong, beginning with a verb.
pub(crate) type Clash = (&'static str, String);

/// Makes every choice: what the draft states, else the profile's, else the default.
pub(crate) fn case(draft: &Draft, catalog: &Catalog) -> Result<Case, Vec<Clash>> {
    let mut clashes = Vec::new();
    let known = |kind, path: &'static str, name: &str| -> Result<String, Clash> {
        if catalog.names(kind).binary_search(&name).is_ok() {
            Ok(name.to_string())
        } else {
            Err((path, format!("is \"{name}\": {}", catalog.hint(kind, name))))
        }
    };
    let mut name = |kind, path, stated: &Option<String>, default: &str| {
        let name = stated.as_deref().unwrap_or(default);
        known(kind, path, name).map_err(|clash| clashes.push(clash)).ok()
    };
    let device = name(ProfileKind::Device, "device", &draft.device, HOST);
    let server = name(ProfileKind::Device, "server", &draft.server, HOST);
    let key_store = name(ProfileKind::KeyStore, "key_store", &draft.key_store, KEY_STORE);
    let link = name(ProfileKind::Link, "link", &draft.link, LINK);
    let mut tcp = |path, stated| name(ProfileKind::Tcp, path, stated, TCP);
    let ends = [tcp("device.tcp", &draft.device_tcp), tcp("server.tcp", &draft.server_tcp)];
    let link =
        link.and_then(|name| catalog.link(&name)).map(|profile| of_link(draft, &profile.link));
    let stack = stack(draft, ends, &mut clashes);
    match (device, server, key_store, link, stack) {
        (Some(device), Some(server), Some(key_store), Some(link), Some(stack))
            if clashes.is_empty() =>
        {
            let path = draft.path.clone();
            let path = path.unwrap_or_else(|| stack.protocol().default_path().into());
            check_path(&stack, &path).map_err(|clash| vec![clash])?;
            let kind = draft.pattern.unwrap_or(PatternKind::Request);
            check_kind(&stack, kind).map_err(|clash| vec![clash])?;
            check_request_body(&stack, draft).map_err(|clash| vec![clash])?;
            // A PUT is answered by 2.04 Changed alone.
            let put = stack.coap().is_some() && draft.request_body.unwrap_or(0) > 0;
            let default_response = if put { 0 } else { RESPONSE_BODY };
            Ok(Case {
                device: Host { profile: device },
                server: Server { profile: server, workers: draft.workers.unwrap_or(1) },
                key_store: KeyStoreChoice {
                    profile: key_store,
                    session_open: draft.session_open.unwrap_or(true),
                },
                link,
                stack,
                pattern: Pattern {
                    kind,
                    path,
                    response_body: draft.response_body.unwrap_or(default_response),
                    request_body: draft.request_body.unwrap_or(0),
                    concurrent: draft.concurrent.unwrap_or(1),
                    rate: (kind == PatternKind::Stream).then(|| draft.rate.unwrap_or(RATE)),
                    pause: draft.pause,
                },
            })
        }
        _ => Err(clashes),
    }
}

/// The profile's link, with what the study states in its place.
fn of_link(draft: &Draft, profile: &Link) -> Link {
    Link {
        profile: profile.profile.clone(),
        rtt: draft.rtt.unwrap_or(profile.rtt),
        jitter: draft.jitter.clone().unwrap_or_else(|| profile.jitter.clone()),
        keep_order: draft.keep_order.unwrap_or(profile.keep_order),
        rate_up: draft.rate_up.or(profile.rate_up),
        rate_down: draft.rate_down.or(profile.rate_down),
        queue_packets: draft.queue_packets.unwrap_or(profile.queue_packets),
        mtu: draft.mtu.unwrap_or(profile.mtu),
        loss: draft.loss.unwrap_or(profile.loss),
    }
}

/// The stack of the draft's protocol.
fn stack(draft: &Draft, tcp: [Option<String>; 2], clashes: &mut Vec<Clash>) -> Option<Stack> {
    match draft.protocol.unwrap_or(Protocol::Https) {
        Protocol::Https => {
            let tls = tls::layer(draft, clashes);
            Some(Stack::Https(Https { tls: tls?, tcp: tcp_layer(draft, tcp)? }))
        }
        Protocol::Coap => coap::layer(draft, clashes).map(Stack::Coap),
        Protocol::Dds => dds::layer(draft, clashes).map(Stack::Dds),
    }
}

/// Whether a protocol's requests can have a path.
fn check_path(stack: &Stack, path: &str) -> Result<(), Clash> {
    match stack {
        Stack::Https(_) => Ok(()),
        Stack::Coap(_) => coap::check_path(path),
        Stack::Dds(_) => dds::check_path(path),
    }
}

/// Whether a protocol has exchanges of a kind.
fn check_kind(stack: &Stack, kind: PatternKind) -> Result<(), Clash> {
    if kind == PatternKind::Stream && stack.dds().is_none() {
        let message =
            format!("is stream: only dds has it, and this is {}", stack.protocol().name());
        return Err(("pattern.kind", message));
    }
    Ok(())
}

/// Whether a protocol's request can have a body.
fn check_request_body(stack: &Stack, draft: &Draft) -> Result<(), Clash> {
    let Some(bytes) = draft.request_body.filter(|&bytes| bytes > 0) else { return Ok(()) };
    let refuse = |message: String| Err(("pattern.request_body", message));
    match stack {
        Stack::Https(https) if https.tls.session == Session::EarlyData => refuse(format!(
            "is {bytes} B: a POST in early data may be replayed, and a server must not act on it \
             (RFC 8470 section 2.1); choose stack.session = \"resumed\", or leave it out"
        )),
        Stack::Https(_) if bytes > LONGEST_BODY => refuse(format!(
            "is {}: expected at most {}, up to which TCP is simulated",
            ByteCount(bytes.into()),
            ByteCount(LONGEST_BODY.into())
        )),
        Stack::Https(_) | Stack::Coap(_) => Ok(()),
        Stack::Dds(_) => refuse(
            "has no effect: a DDS sample is one payload, whose length is \
                                 pattern.response_body; remove it"
                .into(),
        ),
    }
}

fn tcp_layer(draft: &Draft, ends: [Option<String>; 2]) -> Option<Tcp> {
    let [device, server] = ends;
    Some(Tcp {
        device: device?,
        server: server?,
        congestion_control: draft.congestion_control.unwrap_or(CongestionControl::Cubic),
        // RFC 6928, and TCP_INIT_CWND of Linux.
        initcwnd: draft.initcwnd.unwrap_or(10),
        nagle: draft.nagle.unwrap_or(false),
    })
}
