// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every figure that a case rests on, for reports and for the kind of a result.

use std::collections::HashSet;

use super::catalog::{Catalog, ProfileKind};
use super::figure::{FigureOf, Input};
use super::shown::{Show, Shown};
use crate::case::{Case, Loss};
use crate::error::Error;
use crate::evidence::Evidence;
use crate::kind::Kind;
use crate::operation::{KeyStoreCall, Operation, Role};
use crate::units::BitsPerSecond;

/// Every figure that a case may rest on: all costs of its device and server that hold for its
/// stack, its key store's calls, the link, the kernel. See [`inputs_where`] for those that a
/// trace really uses.
///
/// # Errors
/// A profile that the case names is not in the catalog.
pub fn inputs(case: &Case, catalog: &Catalog) -> Result<Vec<Input>, Error> {
    inputs_where(case, catalog, |_| true, |_| true)
}

/// The same for those operations and key-store calls alone that a trace uses.
///
/// # Errors
/// A profile that the case names is not in the catalog.
pub fn inputs_where(
    case: &Case,
    catalog: &Catalog,
    operations: impl Fn(Operation) -> bool,
    calls: impl Fn(KeyStoreCall) -> bool,
) -> Result<Vec<Input>, Error> {
    let missing = |kind: ProfileKind, key: &str, name: &str| {
        Error::new("profiles", key, format!("is \"{name}\": {}", catalog.hint(kind, name)))
    };
    let device = |key: &str, name: &str| {
        catalog.costs(name).ok_or_else(|| missing(ProfileKind::Device, key, name))
    };
    let mut list = Vec::new();
    let ends = [
        ("device", &case.device.profile, Role::Client),
        ("server", &case.server.profile, Role::Server),
    ];
    for (key, name, role) in ends {
        let profile = device(key, name)?;
        list.extend(
            profile
                .inputs(&case.stack, |operation| operation.role() == role && operations(operation)),
        );
    }
    let name = &case.key_store.profile;
    let key_store =
        catalog.key_store(name).ok_or_else(|| missing(ProfileKind::KeyStore, "key_store", name))?;
    list.extend(key_store.inputs(calls));
    list.extend(link_inputs(case, catalog));
    if let Some(tcp) = case.stack.tcp() {
        for (key, name) in [("device.tcp", &tcp.device), ("server.tcp", &tcp.server)] {
            let profile = catalog.tcp(name).ok_or_else(|| missing(ProfileKind::Tcp, key, name))?;
            list.extend_from_slice(profile.figures());
        }
    }
    // Device and server may be one machine, whose figures would come twice.
    let mut seen = HashSet::with_capacity(list.len());
    list.retain(|input| seen.insert((input.of, input.owner.clone(), input.key.clone())));
    Ok(list)
}

/// What a run over the emulated link takes from profiles: the link's figures, and the times of a
/// virtual card that stands in for the key store. All else is real there.
///
/// # Errors
/// A profile that the case names is not in the catalog.
pub fn emulation_inputs(case: &Case, catalog: &Catalog) -> Result<Vec<Input>, Error> {
    let name = &case.key_store.profile;
    let key_store = catalog.key_store(name).ok_or_else(|| {
        let hint = catalog.hint(ProfileKind::KeyStore, name);
        Error::new("profiles", "key_store", format!("is \"{name}\": {hint}"))
    })?;
    let mut list = link_inputs(case, catalog);
    if key_store.stand_in.is_some() {
        list.extend(key_store.inputs(|_| true));
    }
    Ok(list)
}

/// The link profile that is an ideal: what it does not state is not there, by definition.
const NOTHING_IN_THE_WAY: &str = "loopback";

/// The owner of a link's figure that is of no profile.
const CHOSEN: &str = "link";

/// The link's values as the case has them: the profile's figure where it was kept, else the
/// study's own choice.
fn link_inputs(case: &Case, catalog: &Catalog) -> Vec<Input> {
    let link = &case.link;
    let profile = catalog.link(&link.profile);
    let kept = |same: fn(&crate::case::Link, &crate::case::Link) -> bool| {
        profile.is_some_and(|profile| same(&profile.link, link))
    };
    let rate = |rate: Option<BitsPerSecond>| {
        rate.map_or_else(|| Shown::word("unlimited"), |rate| rate.shown("bit/s"))
    };
    let values = [
        ("rtt", "ns", link.rtt.shown("ns"), kept(|a, b| a.rtt == b.rtt)),
        ("jitter", "ns", link.jitter.shown("ns"), kept(|a, b| a.jitter == b.jitter)),
        ("keep_order", "", link.keep_order.shown(""), kept(|a, b| a.keep_order == b.keep_order)),
        ("rate_up", "bit/s", rate(link.rate_up), kept(|a, b| a.rate_up == b.rate_up)),
        ("rate_down", "bit/s", rate(link.rate_down), kept(|a, b| a.rate_down == b.rate_down)),
        (
            "queue_packets",
            "1",
            link.queue_packets.shown("1"),
            kept(|a, b| a.queue_packets == b.queue_packets),
        ),
        ("mtu", "B", link.mtu.shown("B"), kept(|a, b| a.mtu == b.mtu)),
        ("loss", "1", link.loss.shown("1"), kept(|a, b| a.loss == b.loss)),
    ];
    let absent = |key: &str| match key {
        "jitter" => link.jitter.is_empty(),
        "keep_order" => link.jitter.is_empty(),
        "rate_up" => link.rate_up.is_none(),
        "rate_down" => link.rate_down.is_none(),
        "loss" => link.loss == Loss::None,
        _ => false,
    };
    let by_definition = link.profile == NOTHING_IN_THE_WAY;
    let mut inputs = Vec::new();
    for (key, unit, value, kept) in values {
        match profile.and_then(|profile| profile.input(key)).filter(|_| kept) {
            Some(input) => inputs.push(input.clone()),
            None if kept && (by_definition || key == "keep_order" && absent(key)) => {}
            None if kept => inputs.push(Input {
                of: FigureOf::Link,
                owner: CHOSEN.into(),
                key: key.into(),
                value: if absent(key) { Shown::word("none") } else { value },
                unit: unit.into(),
                source: format!("profile {} says nothing of it", link.profile),
                kind: Kind::Assumed,
                evidence: Some(Evidence::Assumed),
            }),
            None if absent(key) => {}
            None => inputs.push(Input {
                of: FigureOf::Link,
                owner: CHOSEN.into(),
                key: key.into(),
                value,
                unit: unit.into(),
                source: "chosen by the study".into(),
                // The emulated link imposes exactly what was chosen, and the simulator as well.
                kind: Kind::Emulated,
                evidence: None,
            }),
        }
    }
    inputs
}
