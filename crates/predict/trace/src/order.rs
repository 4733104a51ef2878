// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order of steps on a connection on which nothing takes time.

use std::fmt;

use warifu_model::Role;

use crate::trace::{MessageId, Party, Step, Trace};

/// A trace whose programs do not come to their ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Both programs wait.
    Deadlock {
        /// Index of the client's step.
        client_at: usize,
        /// Index of the server's step.
        server_at: usize,
    },
    /// A program sends or receives a message that is not next in its direction's byte stream,
    /// or is not there at all.
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
            Stuck::Deadlock { client_at, server_at } => {
                write!(f, "deadlock: client at step {client_at}, server at step {server_at}")
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

/// Runs both programs by turns, each until it waits, and gives their steps in that order. It
/// fails if the programs do not fit together.
pub fn in_order(trace: &Trace) -> Result<Vec<(Party, &Step)>, Stuck> {
    let mut parties = [Runner::new(trace, Role::Client), Runner::new(trace, Role::Server)];
    let mut order = Vec::new();
    let mut opened = false;
    loop {
        let before = order.len();
        for index in [0, 1] {
            let peer_sent = parties[1 - index].sent;
            parties[index].run(trace, peer_sent, &mut opened, &mut order)?;
        }
        if order.len() == before {
            break;
        }
    }
    let [client, server] = &parties;
    if client.at < client.steps.len() || server.at < server.steps.len() {
        return Err(Stuck::Deadlock { client_at: client.at, server_at: server.at });
    }
    let handled = client.received + server.received;
    if handled != trace.messages.len() {
        return Err(Stuck::LeftOver { messages: trace.messages.len() - handled });
    }
    Ok(order)
}

struct Runner<'a> {
    party: Party,
    steps: &'a [Step],
    at: usize,
    /// How many of the party's messages it has sent, and of its peer's it has received.
    sent: usize,
    received: usize,
}

impl<'a> Runner<'a> {
    fn new(trace: &'a Trace, party: Party) -> Self {
        Runner { party, steps: trace.steps(party), at: 0, sent: 0, received: 0 }
    }

    fn run(
        &mut self,
        trace: &Trace,
        peer_sent: usize,
        opened: &mut bool,
        order: &mut Vec<(Party, &'a Step)>,
    ) -> Result<(), Stuck> {
        while let Some(step) = self.steps.get(self.at) {
            match *step {
                Step::Accept { .. } if !*opened => break,
                Step::Open { .. } => *opened = true,
                Step::Receive { message } => {
                    if stream(trace, message, |from| from != self.party) != Some(self.received) {
                        return Err(Stuck::OutOfOrder { party: self.party, message });
                    }
                    if self.received >= peer_sent {
                        break;
                    }
                    self.received += 1;
                }
                Step::Send { first, count, .. } => {
                    for id in first.0..first.0.saturating_add(count) {
                        let message = MessageId(id);
                        if stream(trace, message, |from| from == self.party) != Some(self.sent) {
                            return Err(Stuck::OutOfOrder { party: self.party, message });
                        }
                        self.sent += 1;
                    }
                }
                _ => {}
            }
            order.push((self.party, step));
            self.at += 1;
        }
        Ok(())
    }
}

/// The place of a message in the byte stream of its direction, if `from` accepts its sender.
fn stream(trace: &Trace, id: MessageId, from: impl Fn(Party) -> bool) -> Option<usize> {
    let message = trace.message(id)?;
    let earlier = &trace.messages[..usize::from(id.0)];
    from(message.from).then(|| earlier.iter().filter(|other| other.from == message.from).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Bytes, Carrier, Message, Program};

    fn trace(client: Vec<Step>, server: Vec<Step>) -> Trace {
        let message = |from| Message {
            from,
            label: "message".into(),
            bytes: Bytes::exactly(10),
            overhead: 5,
        };
        Trace {
            messages: vec![message(Role::Client), message(Role::Server)],
            programs: vec![
                Program { party: Role::Client, steps: client },
                Program { party: Role::Server, steps: server },
            ],
        }
    }

    fn send(id: u16) -> Step {
        Step::Send { first: MessageId(id), count: 1, carrier: Carrier::Tcp }
    }

    fn receive(id: u16) -> Step {
        Step::Receive { message: MessageId(id) }
    }

    #[test]
    fn programs_that_fit_come_to_their_ends() {
        let fits = trace(vec![send(0), receive(1)], vec![receive(0), send(1)]);
        let parties: Vec<Party> =
            in_order(&fits).unwrap().into_iter().map(|(party, _)| party).collect();
        assert_eq!(parties, [Role::Client, Role::Server, Role::Server, Role::Client]);
    }

    #[test]
    fn programs_that_do_not_fit_are_found_out() {
        let both_wait = trace(vec![receive(1), send(0)], vec![receive(0), send(1)]);
        assert_eq!(in_order(&both_wait), Err(Stuck::Deadlock { client_at: 0, server_at: 0 }));
        let unread = trace(vec![send(0)], vec![receive(0), send(1)]);
        assert_eq!(in_order(&unread), Err(Stuck::LeftOver { messages: 1 }));
        let foreign = trace(vec![send(1)], vec![]);
        let message = MessageId(1);
        assert_eq!(in_order(&foreign), Err(Stuck::OutOfOrder { party: Role::Client, message }));
        let twice = trace(vec![send(0), receive(1)], vec![receive(0), send(1), receive(0)]);
        let message = MessageId(0);
        assert_eq!(in_order(&twice), Err(Stuck::OutOfOrder { party: Role::Server, message }));
    }
}
