// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DDS over RTPS over UDP: one sample of a string's topic and its answer on another, as Cyclone DDS
//! 0.10.2 sends them to one reliable reader once both have matched: INFO_TS, DATA and a HEARTBEAT
//! in one datagram, or, of a sample that is longer, several DATA_FRAG, each with a heartbeat.
//! Acknowledgements come beside, and nobody waits for them. Discovery is not emulated, and neither
//! is the repair of what is lost.

mod lengths;
mod wire;

use warifu_model::{
    Dds, DdsMessage, DdsProtection, Direction, Keyword, Mark, Nanos, Operation, Pattern,
    PatternKind, Role, SystemCall,
};

pub use lengths::{Datagram, Lengths, Part, Submessage};

use crate::error::TraceError;
use crate::scenario::Scenario;
use crate::trace::{
    Bytes, Carrier, Channel, ChannelId, Message, MessageId, Party, Program, Resource, Step, Trace,
};

/// The time that the lab's probe puts into a sample, and the string's zero.
const SMALLEST_SAMPLE: u32 = 16;
/// What the lab's probe takes (`dds/probes/cyclonedds.c`).
const LARGEST_SAMPLE: u32 = 8 << 20;
/// When nothing of an exchange is on its way any more, and the lab has given it up
/// (`python/warifu/lab/dds/driver.py`). A lost sample would be sent again when the reader asks for
/// it, which is not emulated.
const PATIENCE: Nanos = Nanos::from_millis(65_000);

const CHANNEL: ChannelId = ChannelId(0);

/// One sample and its answer.
pub(crate) fn scenario(dds: &Dds, pattern: &Pattern) -> Result<Scenario, TraceError> {
    Ok(Scenario::of_one(Vec::new(), exchange(dds, pattern)?))
}

/// Why a case is measured alone; `None` where it is emulated as well.
pub(crate) fn why_not_emulated(dds: &Dds, pattern: &Pattern) -> Option<TraceError> {
    if !dds.middleware.is_cyclone() {
        let message = format!(
            "is {}: what it sends is not emulated; `warifu measure` runs it, and cyclonedds is \
             predicted",
            dds.middleware.name()
        );
        return Some(TraceError::new("stack.middleware", message));
    }
    let message = "is stream: a sample and its answer are emulated; `warifu measure` runs it";
    (pattern.kind == PatternKind::Stream).then(|| TraceError::new("pattern.kind", message))
}

/// One sample and its answer.
///
/// # Errors
/// The middleware or the pattern is not emulated; the sample is longer than the probe takes, or has
/// no room for the probe's time.
pub fn exchange(dds: &Dds, pattern: &Pattern) -> Result<Trace, TraceError> {
    if let Some(error) = why_not_emulated(dds, pattern) {
        return Err(error);
    }
    let sample = pattern.response_body;
    if !(SMALLEST_SAMPLE..=LARGEST_SAMPLE).contains(&sample) {
        return Err(TraceError::new(
            "pattern.response_body",
            format!(
                "is {sample} B: expected a sample of {SMALLEST_SAMPLE} B to {} MiB",
                LARGEST_SAMPLE >> 20
            ),
        ));
    }
    let lengths = Lengths::of(dds, sample);
    let count = lengths.datagrams.len() as u32;
    let transfer = |first| Transfer { dds, lengths: &lengths, first: MessageId(first) };
    let (question, answer) = (transfer(0), transfer(count));
    let mut messages = question.messages(Party::CLIENT, sample, "");
    messages.extend(answer.messages(Party::SERVER, sample, " (answer)"));
    Ok(Trace {
        channels: vec![Channel { carrier: Carrier::Udp, ends: [Party::CLIENT, Party::SERVER] }],
        messages,
        programs: vec![
            Program { party: Party::CLIENT, steps: client(question, answer) },
            Program { party: Party::SERVER, steps: server(question, answer) },
        ],
    })
}

fn client(question: Transfer<'_>, answer: Transfer<'_>) -> Vec<Step> {
    let mut steps = vec![Step::Mark(Mark::Start), Step::Deadline { duration: PATIENCE }];
    steps.extend(question.sends(Role::Client));
    steps.extend(answer.receives(Role::Client));
    steps.push(Step::Mark(Mark::FirstResponse));
    steps.extend(answer.receives_rest(Role::Client));
    steps
}

fn server(question: Transfer<'_>, answer: Transfer<'_>) -> Vec<Step> {
    let mut steps = question.receives(Role::Server);
    steps.push(Step::Mark(Mark::SampleRead));
    steps.extend(answer.sends(Role::Server));
    steps.extend(question.receives_rest(Role::Server));
    steps
}

/// A sample on its way from one end to the other.
#[derive(Clone, Copy)]
struct Transfer<'a> {
    dds: &'a Dds,
    lengths: &'a Lengths,
    /// Its first datagram's; those of others follow.
    first: MessageId,
}

impl Transfer<'_> {
    fn messages(self, from: Party, sample: u32, remark: &str) -> Vec<Message> {
        let parts = self.lengths.parts();
        let message = |datagram: &Datagram| Message {
            from,
            channel: CHANNEL,
            label: label(datagram, parts, remark),
            bytes: Bytes::exactly(datagram.message),
            overhead: datagram.message - datagram.content(sample),
        };
        self.lengths.datagrams.iter().map(message).collect()
    }

    /// A part and its heartbeat are made together; a datagram leaves when one of those that come
    /// next does not fit it any more, or when all are made.
    fn sends(self, role: Role) -> Vec<Step> {
        let mut steps = vec![work(role, Direction::Send, DdsMessage::Sample, self.lengths.payload)];
        let datagrams = self.lengths.datagrams.iter().enumerate();
        let made: Vec<(usize, &Submessage)> = datagrams
            .flat_map(|(index, datagram)| datagram.submessages.iter().map(move |one| (index, one)))
            .collect();
        let mut open = 0;
        for together in made.chunks(2) {
            for (_, submessage) in together {
                steps.extend(self.work_on(submessage, role, Direction::Send));
            }
            for &(index, _) in together {
                if index > open {
                    steps.extend(self.send(open, role));
                    open = index;
                }
            }
        }
        steps.extend(self.send(open, role));
        steps
    }

    fn send(self, index: usize, role: Role) -> Vec<Step> {
        let datagram = &self.lengths.datagrams[index];
        let mut steps: Vec<Step> = self.whole(datagram, role, Direction::Send).collect();
        steps.push(Step::Compute {
            operation: Operation::System(role, SystemCall::Write),
            bytes: datagram.message,
            resource: resource(role),
        });
        steps.push(Step::Send { first: self.message(index), count: 1, channel: CHANNEL });
        steps
    }

    /// Until the sample is there.
    fn receives(self, role: Role) -> Vec<Step> {
        let with_parts = 0..self.with_parts();
        let mut steps: Vec<Step> = with_parts.flat_map(|index| self.receive(index, role)).collect();
        steps.push(work(role, Direction::Receive, DdsMessage::Sample, self.lengths.payload));
        steps
    }

    /// A heartbeat that found no room beside the last part; the program has its sample by then.
    fn receives_rest(self, role: Role) -> Vec<Step> {
        let rest = self.with_parts()..self.lengths.datagrams.len();
        rest.flat_map(|index| self.receive(index, role)).collect()
    }

    fn receive(self, index: usize, role: Role) -> Vec<Step> {
        let datagram = &self.lengths.datagrams[index];
        let mut steps = vec![Step::Receive { message: self.message(index) }];
        steps.extend(self.whole(datagram, role, Direction::Receive));
        for submessage in &datagram.submessages {
            let mut inwards = self.work_on(submessage, role, Direction::Receive);
            inwards.reverse();
            steps.extend(inwards);
        }
        steps
    }

    fn message(self, index: usize) -> MessageId {
        MessageId(self.first.0 + index as u32)
    }

    /// How many datagrams carry some of the payload.
    fn with_parts(self) -> usize {
        let carries = |datagram: &Datagram| datagram.parts().next().is_some();
        self.lengths.datagrams.iter().rposition(carries).map_or(0, |last| last + 1)
    }

    /// What is done for one submessage, from the inside out: a call of the plugin each, but for the
    /// middleware's.
    fn work_on(self, submessage: &Submessage, role: Role, direction: Direction) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(part) = submessage.part {
            if part.index > 0 {
                steps.push(work(role, direction, DdsMessage::Part, part.bytes));
            }
            if self.dds.data_protection != DdsProtection::None {
                steps.push(work(role, direction, DdsMessage::Payload, part.bytes));
            }
        }
        if self.dds.metadata_protection != DdsProtection::None {
            steps.push(work(role, direction, DdsMessage::Submessage, submessage.plain));
        }
        steps
    }

    /// The plugin's call for a datagram as a whole, if there is one.
    fn whole(
        self,
        datagram: &Datagram,
        role: Role,
        direction: Direction,
    ) -> impl Iterator<Item = Step> {
        let protected = self.dds.rtps_protection != DdsProtection::None;
        let step = work(role, direction, DdsMessage::RtpsMessage, datagram.plain);
        protected.then_some(step).into_iter()
    }
}

/// `DATA`, with what is said of it; `DATA_FRAG 1/8`, or two: `DATA_FRAG 7+8/8`; `HEARTBEAT`.
fn label(datagram: &Datagram, of: u32, remark: &str) -> String {
    let numbers: Vec<String> = datagram.parts().map(|part| (part.index + 1).to_string()).collect();
    match numbers.len() {
        0 => "HEARTBEAT".into(),
        _ if of == 1 => format!("DATA{remark}"),
        _ => format!("DATA_FRAG {}/{of}", numbers.join("+")),
    }
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
    use warifu_model::{DdsAead, DdsCrypto, DdsMiddleware};

    use super::*;

    fn exchanged(kind: DdsProtection, response_body: u32) -> Result<Trace, TraceError> {
        let dds = Dds {
            crypto: DdsCrypto::Builtin,
            aead: DdsAead::Aes256Gcm,
            data_protection: kind,
            metadata_protection: kind,
            rtps_protection: kind,
            discovery_protection: kind,
            middleware: DdsMiddleware::CycloneDds,
        };
        let (kind, path) = (PatternKind::Request, "/chatter".to_owned());
        exchange(
            &dds,
            &Pattern {
                kind,
                path,
                response_body,
                request_body: 0,
                concurrent: 1,
                rate: None,
                pause: None,
            },
        )
    }

    #[test]
    fn samples_that_the_probe_takes() {
        for sample in [16, 13_432, 13_433, 8 << 20] {
            assert!(exchanged(DdsProtection::Encrypt, sample).is_ok(), "{sample}");
        }
        for sample in [15, (8 << 20) + 1] {
            let error = exchanged(DdsProtection::None, sample).unwrap_err().to_string();
            assert!(error.contains("expected a sample of 16 B to 8 MiB"), "{error}");
        }
    }

    /// Cyclone adds a part to its packet, which goes out when that is too much: the first datagram
    /// leaves after the second part is made.
    #[test]
    fn next_part_is_made_before_a_datagram_leaves() {
        let trace = exchanged(DdsProtection::None, 30_000).unwrap();
        let order: Vec<&str> = trace
            .steps(Party::CLIENT)
            .iter()
            .filter_map(|step| match step {
                Step::Compute {
                    operation: Operation::Dds(_, Direction::Send, message), ..
                } => Some(message.name()),
                Step::Send { .. } => Some("send"),
                _ => None,
            })
            .collect();
        assert_eq!(order, ["DdsSample", "DdsPart", "send", "DdsPart", "send", "send"]);
    }

    #[test]
    fn heartbeat_alone_delays_nobody() {
        let trace = exchanged(DdsProtection::None, 14_549).unwrap();
        let place = |wanted: fn(&Step) -> bool| {
            trace.steps(Party::SERVER).iter().rposition(wanted).unwrap()
        };
        let heartbeat = place(|step| *step == Step::Receive { message: MessageId(1) });
        assert!(heartbeat > place(|step| matches!(step, Step::Send { .. })));
        let client = trace.steps(Party::CLIENT);
        assert_eq!(client.last(), Some(&Step::Receive { message: MessageId(3) }));
    }

    #[test]
    fn what_is_measured_alone() {
        let dds = |middleware| Dds {
            crypto: DdsCrypto::None,
            aead: DdsAead::Aes256Gcm,
            data_protection: DdsProtection::None,
            metadata_protection: DdsProtection::None,
            rtps_protection: DdsProtection::None,
            discovery_protection: DdsProtection::None,
            middleware,
        };
        let pattern = |kind| {
            let path = "/chatter".to_owned();
            Pattern {
                kind,
                path,
                response_body: 64,
                request_body: 0,
                concurrent: 1,
                rate: None,
                pause: None,
            }
        };
        let error = |middleware, kind| {
            exchange(&dds(middleware), &pattern(kind)).err().map(|error| error.key)
        };
        let cyclone = DdsMiddleware::CycloneDds;
        assert_eq!(error(cyclone, PatternKind::Request), None);
        assert_eq!(error(cyclone, PatternKind::Stream), Some("pattern.kind"));
        assert_eq!(error(DdsMiddleware::FastDds, PatternKind::Request), Some("stack.middleware"));
    }
}
