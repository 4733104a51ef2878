// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two small programs that exchange bytes.

use warifu_model::{Mark, Nanos, Operation, Role, SystemCall, Tcp};
use warifu_trace::{
    Bytes, Carrier, Channel, ChannelId, Message, MessageId, Party, Program, Resource, Step, Trace,
};

/// The programs meet on one connection.
const CHANNEL: ChannelId = ChannelId(0);

/// A step: `send` or `receive` and bytes, `close` and 0, `wait_ms` and a time.
pub type Line = (String, u32);

/// The trace of a client's and a server's program, see the example `timeline`, over one connection.
pub fn trace([of_client, of_server]: [&[Line]; 2], tcp: Tcp) -> Trace {
    let sends = |steps: &[Line]| steps.iter().filter(|step| step.0 == "send").count() as u32;
    let clients = sends(of_client);
    let mut messages = Vec::new();
    let mut client = vec![Step::Mark(Mark::Start), Step::Open { channel: CHANNEL }];
    client.push(Step::Mark(Mark::Connected));
    program(Role::Client, of_client, 0, clients, &mut client, &mut messages);
    client.push(Step::Mark(Mark::FirstResponse));
    let mut server = vec![Step::Accept { channel: CHANNEL }];
    program(Role::Server, of_server, clients, 0, &mut server, &mut messages);
    let ends = [Party::CLIENT, Party::SERVER];
    Trace {
        channels: vec![Channel { carrier: Carrier::Tcp(tcp), ends }],
        messages,
        programs: vec![
            Program { party: Party::CLIENT, steps: client },
            Program { party: Party::SERVER, steps: server },
        ],
    }
}

fn program(
    role: Role,
    lines: &[Line],
    mut sends: u32,
    mut receives: u32,
    steps: &mut Vec<Step>,
    messages: &mut Vec<Message>,
) {
    let resource = if role == Role::Client { Resource::ClientLoop } else { Resource::ServerWorker };
    for (word, number) in lines {
        match word.as_str() {
            "send" => {
                let operation = Operation::System(role, SystemCall::Write);
                steps.push(Step::Compute { operation, bytes: 0, resource });
                let first = MessageId(sends);
                steps.push(Step::Send { first, count: 1, channel: CHANNEL });
                let label = String::new();
                let bytes = Bytes::exactly(*number);
                let from = Party::first(role);
                messages.push(Message { from, channel: CHANNEL, label, bytes, overhead: 0 });
                sends += 1;
            }
            "receive" => {
                steps.push(Step::Receive { message: MessageId(receives) });
                receives += 1;
            }
            "close" => steps.push(Step::Close { channel: CHANNEL }),
            _ => steps.push(Step::Wait { duration: Nanos::from_millis(u64::from(*number)) }),
        }
    }
}
