// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samples of DDS packet by packet: datagrams beyond the MTU travel as IP fragments. And what their
//! protection costs.

mod common;

use std::collections::HashMap;

use warifu_model::{Catalog, DdsMessage, Direction, Metric, Operation, ProfileKind, Role};
use warifu_sim::{
    CaseModel, DdsPath, Heading, Outcome, PacketEvent, PathStep, Simulator, simulate_packets,
    step_costs,
};

/// Of IPv4 and UDP.
const IP: u32 = 20;
const UDP: u32 = 8;

fn packets(sample: &str, link: &str, up: &[u64], catalog: &Catalog) -> Vec<PacketEvent> {
    let settings = format!(
        "[link]\nprofile = \"loopback\"\n{link}\n[stack]\nprotocol = \"dds\"\n\
         crypto = \"none\"\n[pattern]\nkind = \"request\"\npath = \"/chatter\"\n\
         response_body = \"{sample}\"\n"
    );
    let model = CaseModel::compile(&common::case(&settings, catalog), catalog).unwrap();
    simulate_packets(&model, up, &[], 1)
}

fn of(events: &[PacketEvent], heading: Heading) -> Vec<&PacketEvent> {
    events.iter().filter(|event| event.heading == heading).collect()
}

/// 50 KiB: 13,536, twice 13,524 and 10,976 B (captured), each with a UDP header, in fragments of
/// 1,480 B and what is left (RFC 791 section 3.2).
#[test]
fn datagrams_in_ip_fragments() {
    let catalog = common::catalog("1 us");
    let events = packets("50 KiB", "mtu = 1500", &[], &catalog);
    let mut expected = Vec::new();
    for (full, rest) in [(9, 224), (9, 212), (9, 212), (7, 624)] {
        expected.extend([1_500].repeat(full));
        expected.push(IP + rest);
    }
    assert_eq!(9 * 1_480 + 224, UDP + 13_536);
    for heading in [Heading::Up, Heading::Down] {
        let lengths: Vec<u32> = of(&events, heading).iter().map(|event| event.len).collect();
        assert_eq!(lengths, expected);
    }
    // One datagram, one packet.
    assert_eq!(packets("50 KiB", "mtu = 65535", &[], &catalog).len(), 2 * 4);
}

/// The last fragment leaves when the link has carried the bits of all: 52,472 B of RTPS would have
/// a lower bound, this is exact.
#[test]
fn fragments_one_behind_the_other_at_the_link_s_rate() {
    let catalog = common::catalog("0 us");
    let link = "mtu = 1500\nrate = \"1 Mbit/s\"\nrtt = \"20 ms\"";
    let events = packets("50 KiB", link, &[], &catalog);
    let (up, down) = (of(&events, Heading::Up), of(&events, Heading::Down));
    let bits: u64 = up.iter().map(|event| 8 * u64::from(event.len)).sum();
    assert_eq!(down[0].time_ns - up[0].time_ns, bits * 1_000 + 10_000_000);
}

#[test]
fn sample_without_one_of_its_fragments_is_not_answered() {
    let catalog = common::catalog("1 us");
    for lost in [0, 12, 37] {
        let events = packets("50 KiB", "mtu = 1500", &[lost], &catalog);
        assert_eq!(of(&events, Heading::Up).len(), 38);
        assert!(of(&events, Heading::Down).is_empty());
    }
}

/// What a pause took from the caches is paid for once, however many parts and calls there are: by
/// each end's first call of a direction for each of the three layers. The answer is read soon
/// after, with warm caches.
#[test]
fn cold_caches_are_paid_for_once_a_layer_and_direction() {
    let mut profile =
        String::from("name = \"constant\"\ndescription = \"a test\"\nidle_threshold = \"5 ms\"\n");
    for operation in Operation::all() {
        let cold = match operation {
            Operation::Dds(_, _, DdsMessage::Payload) => "400 us",
            Operation::Dds(_, _, DdsMessage::Submessage) => "200 us",
            Operation::Dds(_, _, DdsMessage::RtpsMessage) => "100 us",
            _ => "0 ns",
        };
        profile += &format!(
            "[[operation]]\nname = \"{operation}\"\nwarm = \"0 ns\"\ncold = \"{cold}\"\n{}",
            common::whatever(operation)
        );
    }
    for primitive in ["aead.seal.AES-256-GCM", "aead.mac.AES-256-GCM"] {
        profile += &format!("[[primitive]]\nname = \"{primitive}\"\nwarm = \"0 ns\"\n");
    }
    let mut catalog = common::catalog("0 us");
    catalog.add(ProfileKind::Device, "constant", &profile, "constant").unwrap();
    for sample in ["64 B", "50 KiB"] {
        let settings = format!(
            "[link]\nprofile = \"loopback\"\n[stack]\nprotocol = \"dds\"\ncrypto = \"builtin\"\n\
             [pattern]\nkind = \"request\"\npath = \"/chatter\"\nresponse_body = \"{sample}\"\n"
        );
        let case = common::case(&settings, &catalog);
        let model = CaseModel::compile(&case, &catalog).unwrap();
        let mut outcome = Outcome::default();
        Simulator::new().run(&model, 1, &mut outcome);
        let outcome = outcome.connections[0];
        assert_eq!(outcome.value(Metric::DdsOneWay), 1_400_000, "{sample}");
        assert_eq!(outcome.value(Metric::DdsRoundTrip), 2_100_000, "{sample}");
    }
}

/// Where the time goes, step by step: two ends, each protecting and taking off.
#[test]
fn costs_of_each_step() {
    let profile = "name = \"constant\"\ndescription = \"a test\"\n".to_owned()
        + &Operation::all()
            .map(|name| {
                let when = common::whatever(name);
                format!("[[operation]]\nname = \"{name}\"\nwarm = \"1 us\"\n{when}")
            })
            .collect::<String>()
        + "[[primitive]]\nname = \"aead.seal.AES-256-GCM\"\nwarm = \"100 ns\"\n\
           per_byte = \"1 ns\"\n";
    let mut catalog = common::catalog("0 us");
    catalog.add(ProfileKind::Device, "constant", &profile, "constant").unwrap();
    let settings = "[link]\nprofile = \"loopback\"\n[stack]\nprotocol = \"dds\"\n\
                    crypto = \"builtin\"\nmetadata_protection = \"NONE\"\n\
                    rtps_protection = \"NONE\"\n[pattern]\nkind = \"request\"\n\
                    path = \"/chatter\"\nresponse_body = \"64 B\"\n";
    let costs = step_costs(&common::case(settings, &catalog), &catalog).unwrap();
    let ciphers: Vec<_> = costs.iter().filter(|cost| cost.primitive.is_some()).collect();
    assert_eq!(ciphers.len(), 4);
    for cost in &ciphers {
        // The string of 64 B, its length and its encapsulation.
        assert_eq!(cost.bytes, 72, "{cost:?}");
        assert_eq!(cost.own[0].0, 1_000, "{cost:?}");
        assert_eq!(cost.cipher[0].0, 100 + 72, "{cost:?}");
    }
    assert!(costs.iter().all(|cost| cost.own[0].0 == 1_000));
}

/// A secured sample's cost is told in two parts: what it takes without security, and the rest.
#[test]
fn what_protection_adds_to_a_sample_is_apart() {
    let entry = |name: &str, crypto: &str, warm: &str, cold: &str| {
        format!("[[operation]]\nname = \"{name}\"\n{crypto}warm = \"{warm}\"\ncold = \"{cold}\"\n")
    };
    let secured = "when = { crypto = \"builtin\" }\n";
    let mut profile = "name = \"constant\"\ndescription = \"a test\"\n".to_owned();
    for operation in Operation::all() {
        profile += &entry(&operation.to_string(), &common::whatever(operation), "10 us", "15 us");
    }
    profile += &entry("client.send.DdsSample", secured, "13 us", "19 us");
    // What would be less than without security is not told apart.
    profile += &entry("server.receive.DdsSample", secured, "8 us", "9 us");
    for primitive in ["aead.seal.AES-256-GCM", "aead.mac.AES-256-GCM"] {
        profile += &format!("[[primitive]]\nname = \"{primitive}\"\nwarm = \"0 ns\"\n");
    }
    let mut catalog = common::catalog("0 us");
    catalog.add(ProfileKind::Device, "constant", &profile, "constant").unwrap();
    let settings = "[link]\nprofile = \"loopback\"\n[stack]\nprotocol = \"dds\"\n\
                    crypto = \"builtin\"\n[pattern]\nkind = \"request\"\n\
                    path = \"/chatter\"\nresponse_body = \"64 B\"\n";
    let path = DdsPath::of(&common::case(settings, &catalog), &catalog).unwrap();
    let works = path.steps.iter().filter_map(|step| match step {
        PathStep::Work(work) => Some((work.operation, work)),
        _ => None,
    });
    let works: HashMap<_, _> = works.collect();
    let of = |role, direction| works[&Operation::Dds(role, direction, DdsMessage::Sample)];
    let sent = of(Role::Client, Direction::Send);
    assert_eq!((sent.own.mean.0, sent.own.cold.0, sent.protected.0), (10_000, 5_000, 3_000));
    let read = of(Role::Server, Direction::Receive);
    assert_eq!((read.own.mean.0, read.own.cold.0, read.protected.0), (8_000, 1_000, 0));
    let layer = works[&Operation::Dds(Role::Client, Direction::Send, DdsMessage::Payload)];
    assert_eq!((layer.own.mean.0, layer.protected.0), (10_000, 0));
}

/// Its bytes stand beside what a call takes, whether a byte's time is a number or has a law.
#[test]
fn bytes_of_a_path_are_counted_once() {
    let path = |per_byte: &str| {
        let mut profile = "name = \"constant\"\ndescription = \"a test\"\n".to_owned();
        for operation in Operation::all() {
            let when = common::whatever(operation);
            profile += &format!("[[operation]]\nname = \"{operation}\"\n{when}");
            profile += &format!("warm = \"10 us\"\nper_byte = {per_byte}\n");
        }
        for primitive in ["aead.seal.AES-256-GCM", "aead.mac.AES-256-GCM"] {
            profile += &format!("[[primitive]]\nname = \"{primitive}\"\nwarm = \"2 us\"\n");
            profile += &format!("per_byte = {per_byte}\n");
        }
        let mut catalog = common::catalog("0 us");
        catalog.add(ProfileKind::Device, "constant", &profile, "constant").unwrap();
        let settings = "[link]\nprofile = \"loopback\"\n[stack]\nprotocol = \"dds\"\n\
                        crypto = \"builtin\"\n[pattern]\nkind = \"request\"\n\
                        path = \"/chatter\"\nresponse_body = \"1 MiB\"\n";
        DdsPath::of(&common::case(settings, &catalog), &catalog).unwrap()
    };
    let constant = path("\"5 ns\"");
    assert!(constant.steps.iter().any(|step| {
        matches!(step, PathStep::Work(work) if work.own_per_byte_ns == 5.0 && work.cipher.is_some())
    }));
    assert_eq!(path("{ quantiles = [4, 5, 6], unit = \"ns\" }"), constant);
}
