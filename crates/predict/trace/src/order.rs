// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order of steps of a trace in which nothing takes time.

use std::fmt;

use crate::trace::{Channel, ChannelId, MessageId, Party, Step, Trace};

/// A trace whose programs do not come to their ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Every program that has not ended waits.
    Deadlock {
        /// Those programs, each with the index of its step.
        waiting: Vec<(Party, usize)>,
    },
    /// A program sends or receives a message that is not next in its channel and direction, or is
    /// not there at all.
    OutOfOrder {
        /// Whose program.
        party: Party,
        /// The message.
        message: MessageId,
    },
    /// A message that was sent is never received, or one of the trace is never sent.
    LeftOver {
        /// How many.
        messages: usize,
    },
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stuck::Deadlock { waiting } => {
                let list: Vec<String> = waiting
                    .iter()
                    .map(|(party, at)| format!("{} at step {at}", party.name()))
                    .collect();
                write!(f, "deadlock: {}", list.join(", "))
            }
            Stuck::OutOfOrder { party, message } => {
                write!(f, "{}: message {} is out of order", party.name(), message.0)
            }
            Stuck::LeftOver { messages } => {
                write!(f, "{messages} messages are never sent or never received")
            }
        }
    }
}

impl std::error::Error for Stuck {}

/// Runs all programs by turns, each until it waits, and gives their steps in that order.
///
/// # Errors
/// The programs do not fit together.
pub fn in_order(trace: &Trace) -> Result<Vec<(Party, &Step)>, Stuck> {
    let mut run = Run {
        trace,
        at: vec![0; trace.programs.len()],
        open: vec![false; trace.channels.len()],
        sent: vec![false; trace.messages.len()],
        received: vec![false; trace.messages.len()],
        order: Vec::new(),
    };
    loop {
        let before = run.order.len();
        for index in 0..trace.programs.len() {
            run.program(index)?;
        }
        if run.order.len() == before {
            break;
        }
    }
    let ended = |(program, &at): (&crate::trace::Program, &usize)| {
        (at < program.steps.len()).then_some((program.party, at))
    };
    let waiting: Vec<_> = trace.programs.iter().zip(&run.at).filter_map(ended).collect();
    if !waiting.is_empty() {
        return Err(Stuck::Deadlock { waiting });
    }
    match run.received.iter().filter(|&&received| !received).count() {
        0 => Ok(run.order),
        messages => Err(Stuck::LeftOver { messages }),
    }
}

struct Run<'a> {
    trace: &'a Trace,
    /// Of each program, the next step.
    at: Vec<usize>,
    /// Of each channel, whether it has been opened.
    open: Vec<bool>,
    /// Of each message.
    sent: Vec<bool>,
    received: Vec<bool>,
    order: Vec<(Party, &'a Step)>,
}

impl<'a> Run<'a> {
    fn program(&mut self, index: usize) -> Result<(), Stuck> {
        let trace: &'a Trace = self.trace;
        let program = &trace.programs[index];
        let party = program.party;
        while let Some(step) = program.steps.get(self.at[index]) {
            match *step {
                Step::Accept { channel } if !self.is_open(channel) => break,
                Step::Open { channel } => {
                    if let Some(open) = self.open.get_mut(channel.0 as usize) {
                        *open = true;
                    }
                }
                Step::Receive { message } => {
                    let from_peer = |from| from != party;
                    if !next(trace, message, &self.received, from_peer, party) {
                        return Err(Stuck::OutOfOrder { party, message });
                    }
                    if !self.sent[message.0 as usize] {
                        break;
                    }
                    self.received[message.0 as usize] = true;
                }
                Step::Send { first, count, .. } => {
                    for id in first.0..first.0.saturating_add(count) {
                        let message = MessageId(id);
                        if !next(trace, message, &self.sent, |from| from == party, party) {
                            return Err(Stuck::OutOfOrder { party, message });
                        }
                        self.sent[id as usize] = true;
                    }
                }
                _ => {}
            }
            self.order.push((party, step));
            self.at[index] += 1;
        }
        Ok(())
    }

    fn is_open(&self, channel: ChannelId) -> bool {
        self.open.get(channel.0 as usize).copied().unwrap_or(false)
    }
}

/// Whether a message is the next, of those that are not `done`, of its sender on its channel, if
/// `from` accepts that sender and `party` is an end of the channel.
fn next(
    trace: &Trace,
    id: MessageId,
    done: &[bool],
    from: impl Fn(Party) -> bool,
    party: Party,
) -> bool {
    let Some(message) = trace.message(id).filter(|message| from(message.from)) else {
        return false;
    };
    let is_end = |channel: &Channel| channel.ends.contains(&party);
    if !trace.channels.get(message.channel.0 as usize).is_some_and(is_end) {
        return false;
    }
    let earlier = trace.messages[..id.0 as usize].iter().zip(done);
    let mut same =
        earlier.filter(|(other, _)| other.from == message.from && other.channel == message.channel);
    !done[id.0 as usize] && same.all(|(_, &done)| done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Bytes, Carrier, Message, Program};

    const CHANNEL: ChannelId = ChannelId(0);

    fn trace(client: Vec<Step>, server: Vec<Step>) -> Trace {
        let message = |from| Message {
            from,
            channel: CHANNEL,
            label: "message".into(),
            bytes: Bytes::exactly(10),
            overhead: 5,
        };
        let ends = [Party::CLIENT, Party::SERVER];
        Trace {
            channels: vec![Channel { carrier: Carrier::Udp, ends }],
            messages: vec![message(Party::CLIENT), message(Party::SERVER)],
            programs: vec![
                Program { party: Party::CLIENT, steps: client },
                Program { party: Party::SERVER, steps: server },
            ],
        }
    }

    fn send(id: u32) -> Step {
        Step::Send { first: MessageId(id), count: 1, channel: CHANNEL }
    }

    fn receive(id: u32) -> Step {
        Step::Receive { message: MessageId(id) }
    }

    #[test]
    fn programs_that_fit_come_to_their_ends() {
        let fits = trace(vec![send(0), receive(1)], vec![receive(0), send(1)]);
        let parties: Vec<Party> =
            in_order(&fits).unwrap().into_iter().map(|(party, _)| party).collect();
        assert_eq!(parties, [Party::CLIENT, Party::SERVER, Party::SERVER, Party::CLIENT]);
    }

    #[test]
    fn programs_that_do_not_fit_are_found_out() {
        let both_wait = trace(vec![receive(1), send(0)], vec![receive(0), send(1)]);
        assert_eq!(
            in_order(&both_wait),
            Err(Stuck::Deadlock { waiting: vec![(Party::CLIENT, 0), (Party::SERVER, 0)] })
        );
        let unread = trace(vec![send(0)], vec![receive(0), send(1)]);
        assert_eq!(in_order(&unread), Err(Stuck::LeftOver { messages: 1 }));
        let foreign = trace(vec![send(1)], vec![]);
        let message = MessageId(1);
        assert_eq!(in_order(&foreign), Err(Stuck::OutOfOrder { party: Party::CLIENT, message }));
        let twice = trace(vec![send(0), receive(1)], vec![receive(0), send(1), receive(0)]);
        let message = MessageId(0);
        assert_eq!(in_order(&twice), Err(Stuck::OutOfOrder { party: Party::SERVER, message }));
    }
}
