// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DDS over RTPS over UDP: one sample of a string's topic and its answer on another, as Cyclone DDS
//! 0.10.2 sends them to one reliable reader once both have matched: INFO_TS, DATA and a HEARTBEAT
//! in one datagram each. The acknowledgement comes beside, and nobody waits for it. Discovery is
//! not emulated, and neither are fragments.

mod wire;

use warifu_model::{
    Dds, DdsMessage, DdsProtection, Direction, Mark, Nanos, Operation, Pattern, Role, SystemCall,
};

use crate::error::TraceError;
use crate::scenario::Scenario;
use crate::trace::{
    Bytes, Carrier, Channel, ChannelId, Message, MessageId, Party, Program, Resource, Step, Trace,
};

/// The time that the lab's probe puts into a sample, and the string's zero.
const SMALLEST_SAMPLE: u32 = 16;
/// Beyond it a payload goes in fragments: ten of 1,344 B, which is what fits a message of 14,720 B
/// (General/FragmentSize and MaxMessageSize of Cyclone DDS 0.10.2), whatever protection adds. Seen
/// in `tests/system/dds/test_lengths.py`.
const LARGEST_PAYLOAD: u32 = 10 * 1_344;
/// The sample in it.
const LARGEST_SAMPLE: u32 = LARGEST_PAYLOAD - wire::CDR;
/// When nothing of an exchange is on its way any more. A lost sample would be sent again when the
/// reader asks for it, which is not emulated.
const PATIENCE: Nanos = Nanos::from_millis(10_000);

const CHANNEL: ChannelId = ChannelId(0);
const SAMPLE: MessageId = MessageId(0);
const ANSWER: MessageId = MessageId(1);

/// Lengths of a sample on its way, B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// The payload, serialised.
    pub payload: u32,
    /// DATA with the payload, protected where the governance says so.
    pub data: u32,
    /// HEARTBEAT, alike.
    pub heartbeat: u32,
    /// INFO_TS and both as submessages.
    pub submessages: u32,
    /// The datagram.
    pub message: u32,
}

impl Lengths {
    /// Of a sample of so many bytes, its zero included.
    pub fn of(dds: &Dds, sample: u32) -> Lengths {
        let payload = wire::payload(sample);
        let data = wire::data(wire::protected_payload(dds, payload));
        let protected = [data, wire::HEARTBEAT].map(|plain| wire::protected_submessage(dds, plain));
        let submessages = wire::INFO_TS + protected[0] + protected[1];
        let message = wire::message(dds, submessages);
        Lengths { payload, data, heartbeat: wire::HEARTBEAT, submessages, message }
    }
}

/// One sample and its answer.
pub(crate) fn scenario(dds: &Dds, pattern: &Pattern) -> Result<Scenario, TraceError> {
    Ok(Scenario::of_one(Vec::new(), exchange(dds, pattern)?))
}

/// One sample and its answer.
///
/// # Errors
/// The sample does not fit one datagram, or has no room for the probe's time.
pub fn exchange(dds: &Dds, pattern: &Pattern) -> Result<Trace, TraceError> {
    let sample = pattern.response_body;
    if !(SMALLEST_SAMPLE..=LARGEST_SAMPLE).contains(&sample) {
        return Err(TraceError::new(
            "pattern.response_body",
            format!(
                "is {sample} B: expected a sample of {SMALLEST_SAMPLE} to {LARGEST_SAMPLE} B, what \
                 Cyclone DDS sends in one piece; fragments are not emulated"
            ),
        ));
    }
    let lengths = Lengths::of(dds, sample);
    let message = |from, label: &str| Message {
        from,
        channel: CHANNEL,
        label: label.into(),
        bytes: Bytes::exactly(lengths.message),
        overhead: lengths.message - sample,
    };
    Ok(Trace {
        channels: vec![Channel { carrier: Carrier::Udp, ends: [Party::CLIENT, Party::SERVER] }],
        messages: vec![message(Party::CLIENT, "DATA"), message(Party::SERVER, "DATA (answer)")],
        programs: vec![
            Program { party: Party::CLIENT, steps: client(dds, lengths) },
            Program { party: Party::SERVER, steps: server(dds, lengths) },
        ],
    })
}

fn client(dds: &Dds, lengths: Lengths) -> Vec<Step> {
    let mut steps = vec![Step::Mark(Mark::Start), Step::Deadline { duration: PATIENCE }];
    steps.extend(sends(dds, lengths, Role::Client, SAMPLE));
    steps.extend(receives(dds, lengths, Role::Client, ANSWER));
    steps.push(Step::Mark(Mark::FirstResponse));
    steps
}

fn server(dds: &Dds, lengths: Lengths) -> Vec<Step> {
    let mut steps = receives(dds, lengths, Role::Server, SAMPLE);
    steps.extend(sends(dds, lengths, Role::Server, ANSWER));
    steps
}

fn sends(dds: &Dds, lengths: Lengths, role: Role, message: MessageId) -> Vec<Step> {
    let mut steps = vec![work(role, Direction::Send, DdsMessage::Sample, lengths.payload)];
    steps.extend(protections(dds, lengths, role, Direction::Send));
    steps.push(Step::Compute {
        operation: Operation::System(role, SystemCall::Write),
        bytes: lengths.message,
        resource: resource(role),
    });
    steps.push(Step::Send { first: message, count: 1, channel: CHANNEL });
    steps
}

fn receives(dds: &Dds, lengths: Lengths, role: Role, message: MessageId) -> Vec<Step> {
    let mut steps = vec![Step::Receive { message }];
    let mut taken_off = protections(dds, lengths, role, Direction::Receive);
    taken_off.reverse();
    steps.extend(taken_off);
    steps.push(work(role, Direction::Receive, DdsMessage::Sample, lengths.payload));
    steps
}

/// A call of the plugin each, from the inside out, for what it is given.
fn protections(dds: &Dds, lengths: Lengths, role: Role, direction: Direction) -> Vec<Step> {
    let mut steps = Vec::new();
    if dds.data_protection != DdsProtection::None {
        steps.push(work(role, direction, DdsMessage::Payload, lengths.payload));
    }
    if dds.metadata_protection != DdsProtection::None {
        for plain in [lengths.data, lengths.heartbeat] {
            steps.push(work(role, direction, DdsMessage::Submessage, plain));
        }
    }
    if dds.rtps_protection != DdsProtection::None {
        let plain = wire::RTPS_HEADER + lengths.submessages;
        steps.push(work(role, direction, DdsMessage::RtpsMessage, plain));
    }
    steps
}

fn work(role: Role, direction: Direction, message: DdsMessage, bytes: u32) -> Step {
    let operation = Operation::Dds(role, direction, message);
    Step::Compute { operation, bytes, resource: resource(role) }
}

const fn resource(role: Role) -> Resource {
    match role {
        Role::Client => Resource::ClientLoop,
        Role::Server => Resource::ServerWorker,
    }
}

#[cfg(test)]
mod tests {
    use warifu_model::{DdsAead, DdsCrypto, PatternKind};

    use super::*;

    fn dds(data: DdsProtection, metadata: DdsProtection, rtps: DdsProtection) -> Dds {
        Dds {
            crypto: DdsCrypto::Builtin,
            aead: DdsAead::Aes256Gcm,
            data_protection: data,
            metadata_protection: metadata,
            rtps_protection: rtps,
            discovery_protection: DdsProtection::Encrypt,
        }
    }

    /// As tcpdump saw them between two processes of Cyclone DDS 0.10.2, samples of 61 B; the test
    /// `tests/system/dds/test_lengths.py` captures them anew.
    #[test]
    fn lengths_of_cyclone() {
        use DdsProtection::{Encrypt, EncryptWithOriginAuthentication as Origin, None, Sign};
        for (kinds, expected) in [
            ([None, None, None], 160),
            ([Encrypt, None, None], 204),
            ([None, Encrypt, None], 272),
            ([None, Origin, None], 312),
            ([None, None, Encrypt], 240),
            ([None, None, Origin], 260),
            ([Encrypt, Encrypt, Sign], 388),
        ] {
            let [data, metadata, rtps] = kinds;
            assert_eq!(Lengths::of(&dds(data, metadata, rtps), 61).message, expected, "{kinds:?}");
        }
    }

    #[test]
    fn samples_that_go_in_one_piece() {
        let plain = dds(DdsProtection::None, DdsProtection::None, DdsProtection::None);
        let exchanged = |dds: &Dds, response_body| {
            let (kind, path) = (PatternKind::Request, "/chatter".to_owned());
            exchange(dds, &Pattern { kind, path, response_body, concurrent: 1 })
        };
        for sample in [16, 13_432] {
            assert!(exchanged(&plain, sample).is_ok(), "{sample}");
        }
        for sample in [15, 13_433] {
            let error = exchanged(&plain, sample).unwrap_err().to_string();
            assert!(error.contains("expected a sample of 16 to 13432 B"), "{error}");
        }
        let encrypted = dds(DdsProtection::Encrypt, DdsProtection::None, DdsProtection::None);
        assert!(exchanged(&encrypted, 13_432).is_ok());
        assert!(exchanged(&encrypted, 13_433).is_err());
    }
}
