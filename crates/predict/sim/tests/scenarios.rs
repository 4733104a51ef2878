// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scenarios of several episodes, instances that begin at different times, and ends that run
//! different kernels.

mod common;

use warifu_model::{
    Case, Catalog, CoapMessage, Direction, Mark, Metric, Nanos, Operation, Role, Stack, Stage,
    Study,
};
use warifu_sim::{
    CaseModel, ConnectionOutcome, Heading, Outcome, PacketEvent, Simulator, simulate_packets,
    trial_seed,
};
use warifu_trace::{
    Bytes, Carrier, Channel, ChannelId, Episode, Message, MessageId, Party, Program, Resource,
    Step, Trace, scenario,
};

const MS: u64 = 1_000_000;

/// Server authentication and no cost in the key store: what is left is the link and `time` per
/// operation.
const PLAIN: &str = "key_store = \"software\"\n[link]\nprofile = \"loopback\"\nrtt = \"60 ms\"\n\
                     [stack]\nprotocol = \"https\"\ntls = \"1.3\"\nauthentication = \"server\"\n";

/// The episode of a case, with a gap before it and maybe a deadline.
fn episode(case: &Case, gap: Nanos, deadline: Option<Nanos>) -> Episode {
    let mut episodes = scenario(case).unwrap().episodes;
    assert_eq!(episodes.len(), 1, "the case makes one connection");
    Episode { gap, deadline, ..episodes.remove(0) }
}

fn run(model: &CaseModel) -> Vec<ConnectionOutcome> {
    let mut outcome = Outcome::default();
    Simulator::new().run(model, 1, &mut outcome);
    outcome.connections
}

fn idle(connection: &ConnectionOutcome) -> u64 {
    connection.stages[Stage::Idle as usize]
}

#[test]
fn episodes_follow_one_another_after_their_gaps() {
    let catalog = common::catalog("0 ms");
    let case = common::case(PLAIN, &catalog);
    let gaps = [Nanos::ZERO, Nanos::from_millis(7_000), Nanos::from_millis(250)];
    let episodes = gaps.map(|gap| episode(&case, gap, None));
    let model = CaseModel::with_episodes(&case, &episodes, &catalog).unwrap();
    assert_eq!(model.connections(), 3);
    let connections = run(&model);
    assert_eq!(connections.len(), 3);
    let total = connections[0].value(Metric::HttpsEstablishment);
    for after in &connections[1..] {
        assert_eq!(after.value(Metric::HttpsEstablishment), total, "each on a channel of its own");
    }
    for (pair, gap) in connections.windows(2).zip(&gaps[1..]) {
        // What the client still does after its last mark comes before the gap.
        let pause = pair[1].marks[0] - pair[0].marks[3];
        assert!((gap.0..gap.0 + MS).contains(&pause), "{pause} after a gap of {}", gap.0);
    }
    for connection in &connections {
        assert_eq!(idle(connection), 0, "a gap is no part of the connection after it");
        assert_eq!(connection.stages.iter().sum::<u64>(), total);
        let packets = connections[0].value(Metric::PacketsLink);
        assert_eq!(connection.value(Metric::PacketsLink), packets, "counted from its own start");
    }
}

#[test]
fn episode_past_its_deadline_has_failed() {
    let catalog = common::catalog("0 ms");
    let case = common::case(PLAIN, &catalog);
    let alone = CaseModel::compile(&case, &catalog).unwrap();
    let total = Nanos(run(&alone)[0].marks[3]);
    let failed = |deadline: Nanos| {
        let episodes = [
            episode(&case, Nanos::ZERO, None),
            episode(&case, Nanos::from_millis(100), Some(deadline)),
            episode(&case, Nanos::from_millis(100), None),
        ];
        let model = CaseModel::with_episodes(&case, &episodes, &catalog).unwrap();
        run(&model).iter().map(|connection| connection.failed).collect::<Vec<_>>()
    };
    // The deadline is counted from the end of the gap.
    assert_eq!(failed(Nanos(total.0 + MS)), [false, false, false]);
    assert_eq!(failed(Nanos(total.0 - MS)), [false, true, false]);
}

#[test]
fn episode_that_never_ends_fails_those_after_it() {
    let catalog = common::catalog("0 ms");
    let case = common::case(PLAIN, &catalog);
    let episodes = [
        episode(&case, Nanos::ZERO, None),
        episode(&case, Nanos::ZERO, None),
        episode(&case, Nanos::ZERO, None),
    ];
    let model = CaseModel::with_episodes(&case, &episodes, &catalog).unwrap();
    // Nothing from the device arrives from the second connection's beginning on.
    let second_begins = run(&model)[1].marks[0];
    let events = simulate_packets(&model, &[], &[], 1);
    let before =
        |event: &&PacketEvent| event.heading == Heading::Up && event.time_ns < second_begins;
    let first = events.iter().filter(before).count() as u64;
    let lost: Vec<u64> = (first..first + 200).collect();
    let failed: Vec<bool> =
        run(&model.with_drops(&lost, &[])).iter().map(|connection| connection.failed).collect();
    assert_eq!(failed, [false, true, true]);
}

#[test]
fn instances_begin_at_their_own_times() {
    let catalog = common::catalog("0 ms");
    let case = common::case(PLAIN, &catalog);
    let begins = [Nanos::from_millis(500), Nanos::ZERO, Nanos::from_millis(20_000)];
    let alone = CaseModel::compile(&case, &catalog).unwrap();
    let total = run(&alone)[0].value(Metric::HttpsEstablishment);
    let connections = run(&alone.with_begins(&begins));
    assert_eq!(connections.len(), begins.len());
    for (connection, begin) in connections.iter().zip(begins) {
        assert_eq!(connection.marks[0], begin.0);
        assert_eq!(connection.value(Metric::HttpsEstablishment), total);
        assert_eq!(idle(connection), 0, "the time before its beginning is not the connection's");
    }
}

#[test]
fn instance_that_begins_in_anothers_signature_waits_for_the_loop() {
    let catalog = common::catalog("0 ms");
    let settings = PLAIN
        .replace("key_store = \"software\"", "key_store = \"constant\"")
        .replace("\"server\"", "\"mutual\"");
    let model = CaseModel::compile(&common::case(&settings, &catalog), &catalog).unwrap();
    let alone = run(&model)[0];
    // In the middle of the first one's signature of 476 ms.
    let begin = Nanos(alone.marks[2] - 100 * MS);
    let [first, second] = run(&model.with_begins(&[Nanos::ZERO, begin]))[..] else { panic!() };
    assert_eq!(first.marks, alone.marks, "the first one has the loop");
    // What the loop was busy with before does not belong to the second connection.
    let waited = second.marks[0] - begin.0;
    assert!(waited.abs_diff(100 * MS) < 40 * MS, "{waited}");
    let total = alone.value(Metric::HttpsEstablishment);
    assert_eq!(second.value(Metric::HttpsEstablishment), total);
}

/// The times at which the device sent its SYN, and the server its SYN-ACK, where the first two of
/// each are lost, ms.
fn opening(device: &str, server: &str, catalog: &Catalog) -> [Vec<u64>; 2] {
    let mut case = common::case(PLAIN, catalog);
    let Stack::Https(https) = &mut case.stack else { panic!("the case is of HTTPS") };
    https.tcp.device = device.to_owned();
    https.tcp.server = server.to_owned();
    let model = CaseModel::compile(&case, catalog).unwrap();
    let events = simulate_packets(&model, &[0, 1], &[0, 1], 1);
    [Heading::Up, Heading::Down].map(|heading| {
        let of = events.iter().filter(|event| event.heading == heading);
        let syns = of.filter(|event| event.flags.contains('S'));
        syns.map(|event| event.time_ns / MS).collect()
    })
}

#[test]
fn each_end_has_the_timers_of_its_own_kernel() {
    let mut catalog = common::catalog("0 ms");
    // Like Linux 6.18, but for its first timeout.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../profiles/tcp/linux-6.18.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let slow = text
        .replace("name = \"linux-6.18\"", "name = \"slow\"")
        .replace("tcp_timeout_init = { value = \"1 s\"", "tcp_timeout_init = { value = \"3 s\"");
    catalog.add(warifu_model::ProfileKind::Tcp, "slow", &slow, "slow.toml").unwrap();
    let near = |times: &[u64], expected: &[u64]| {
        // The wheel rounds seconds up to 256 ms at most.
        let close = |(time, at): (&u64, &u64)| (*at..=at + 300).contains(time);
        assert!(times.len() >= expected.len(), "{times:?}");
        assert!(times.iter().zip(expected).all(close), "{times:?}, expected {expected:?}");
    };
    let [up, _] = opening("linux-6.18", "slow", &catalog);
    near(&up, &[0, 1_000, 2_000]);
    let [up, _] = opening("slow", "linux-6.18", &catalog);
    near(&up, &[0, 3_000, 6_000]);
    // Linux 6.1 doubles at once.
    let [up, _] = opening("linux-6.1", "linux-6.18", &catalog);
    near(&up, &[0, 1_000, 3_000]);
}

/// What is known of trials without loss is asked of each end's own clock.
#[test]
fn kernels_with_different_ticks() {
    let mut catalog = common::catalog("70 us");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../profiles/tcp/linux-6.18.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let fast = text
        .replace("name = \"linux-6.18\"", "name = \"fast\"")
        .replace("hz = { value = 250", "hz = { value = 1000");
    catalog.add(warifu_model::ProfileKind::Tcp, "fast", &fast, "fast.toml").unwrap();
    for (device, server) in [("fast", "linux-6.18"), ("linux-6.18", "fast")] {
        let mut case = common::case(common::REFERENCE, &catalog);
        let Stack::Https(https) = &mut case.stack else { panic!("the case is of HTTPS") };
        https.tcp.device = device.to_owned();
        https.tcp.server = server.to_owned();
        let model = CaseModel::compile(&case, &catalog).unwrap();
        let mut remembering = Simulator::new();
        let (mut with, mut without) = (Outcome::default(), Outcome::default());
        for trial in 0..1_000 {
            let seed = trial_seed(3, &case.seed_id(), trial);
            remembering.run(&model, seed, &mut with);
            // A fresh one remembers nothing.
            Simulator::new().run(&model, seed, &mut without);
            assert_eq!(with, without, "{device} {server} trial {trial}");
        }
    }
}

#[test]
fn long_response_is_complete_after_its_first_byte() {
    let catalog = common::catalog("0 ms");
    let metrics = |body: &str| {
        let text = format!("{PLAIN}[pattern]\nkind = \"request\"\nresponse_body = \"{body}\"\n");
        let text = text.replace("rtt = \"60 ms\"", "rtt = \"60 ms\"\nrate = \"1 Mbit/s\"");
        let model = CaseModel::compile(&common::case(&text, &catalog), &catalog).unwrap();
        let of = run(&model)[0];
        let stages: u64 = of.stages.iter().sum();
        let first = of.value(Metric::HttpsEstablishment);
        assert_eq!(stages, first, "stages divide the time to the first byte");
        (first, of.value(Metric::HttpsResponseComplete))
    };
    let (first, complete) = metrics("64 KiB");
    // 48 KiB are left after the first record: 393 ms at 1 Mbit/s, and little more for headers.
    assert!((393 * MS..425 * MS).contains(&(complete - first)), "{first} {complete}");
}

#[test]
fn several_connections_have_one_scenario() {
    let catalog = common::catalog("0 ms");
    let settings = PLAIN
        .replace("key_store = \"software\"", "key_store = \"constant\"")
        .replace("\"server\"", "\"mutual\"");
    let text = format!("{settings}[pattern]\nkind = \"request\"\nconcurrent = 3\n");
    let model = CaseModel::compile(&common::case(&text, &catalog), &catalog).unwrap();
    let mut outcome = Outcome::default();
    Simulator::new().run(&model, 1, &mut outcome);
    let responses = outcome.connections.iter().map(|of| of.marks[Mark::FirstResponse as usize]);
    let last = responses.max();
    assert_eq!(outcome.value(Metric::ScenarioDuration), last, "all begin at once");
    // They sign one after the other.
    assert!(last > Some(3 * 476 * MS));
    let alone = common::case(&settings, &catalog);
    let alone = run(&CaseModel::compile(&alone, &catalog).unwrap())[0].value(Metric::BytesLink);
    // A loop that is busy with the others acknowledges now and then what it would not alone.
    let together = outcome.value(Metric::ScenarioBytesLink).unwrap();
    assert!((3 * alone..3 * alone + 12 * 52).contains(&together), "{together} and {alone} alone");
}

#[test]
fn gap_of_two_hours() {
    let catalog = common::catalog("0 ms");
    let case = common::case(PLAIN, &catalog);
    let hours = Nanos::from_millis(2 * 3_600_000);
    let episodes = [episode(&case, Nanos::ZERO, None), episode(&case, hours, None)];
    let model = CaseModel::with_episodes(&case, &episodes, &catalog).unwrap();
    let connections = run(&model);
    assert!(connections.iter().all(|connection| !connection.failed));
    assert!(connections[1].marks[0] > hours.0);
}

/// A device asks two servers of one machine, each with 20 ms of work for its request.
fn two_servers(workers: u32) -> u64 {
    let catalog = common::catalog("10 ms");
    let settings = format!(
        "server = {{ profile = \"constant\", workers = {workers} }}\nstack = \"coap/non\"\n\
         [link]\nprofile = \"loopback\"\nrtt = \"60 ms\"\n"
    );
    let text = format!("name = \"test\"\ndevice = \"constant\"\n{settings}");
    let case = Study::parse(&text, "test.toml", &catalog).unwrap().cases.remove(0);
    let servers = [0, 1].map(|index| Party { role: Role::Server, index });
    let message = |from, channel, label: &str| Message {
        from,
        channel: ChannelId(channel),
        label: label.into(),
        bytes: Bytes::exactly(20),
        overhead: 0,
    };
    let send = |message, channel| Step::Send {
        first: MessageId(message),
        count: 1,
        channel: ChannelId(channel),
    };
    let receive = |message| Step::Receive { message: MessageId(message) };
    let work = Step::Compute {
        operation: Operation::Coap(Role::Server, Direction::Receive, CoapMessage::Request),
        bytes: 0,
        resource: Resource::ServerWorker,
    };
    let server = |index: u32| Program {
        party: servers[index as usize],
        steps: vec![receive(index), work.clone(), work.clone(), send(2 + index, index)],
    };
    let trace = Trace {
        channels: servers
            .map(|server| Channel { carrier: Carrier::Udp, ends: [Party::CLIENT, server] })
            .to_vec(),
        messages: vec![
            message(Party::CLIENT, 0, "first request"),
            message(Party::CLIENT, 1, "second request"),
            message(servers[0], 0, "first response"),
            message(servers[1], 1, "second response"),
        ],
        programs: vec![
            Program {
                party: Party::CLIENT,
                steps: vec![
                    Step::Mark(Mark::Start),
                    send(0, 0),
                    send(1, 1),
                    receive(2),
                    receive(3),
                    Step::Mark(Mark::FirstResponse),
                ],
            },
            server(0),
            server(1),
        ],
    };
    let model = CaseModel::with_trace(&case, &trace, &catalog).unwrap();
    run(&model)[0].value(Metric::CoapExchange)
}

#[test]
fn servers_of_one_machine_share_its_workers() {
    let (one, two) = (two_servers(1), two_servers(2));
    assert!((20 * MS..40 * MS).contains(&(one - two)), "{one} ns with one worker, {two} with two");
}
