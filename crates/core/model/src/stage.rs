// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The closed list of stages that observations use.

use serde::{Deserialize, Serialize};

/// A part of the critical path. Each nanosecond of it belongs to exactly one stage, so the
/// stages of a trial add up to its metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Stage {
    /// Cryptography and protocol work on the client's processor.
    ClientCompute,
    /// System calls, wake-ups and event loop on the client.
    ClientSystem,
    /// Cryptography and protocol work on the server's processor.
    ServerCompute,
    /// System calls, wake-ups and event loop on the server.
    ServerSystem,
    /// The key store at work (a card's signature, its session and look-ups).
    KeyStore,
    /// Waiting for a resource that serves somebody else (a busy card, worker or loop).
    ResourceQueue,
    /// The link's propagation delay and jitter.
    Propagation,
    /// Putting the bits of the packet that matters on the link, at the link's rate.
    Serialisation,
    /// Waiting in the link's queue behind other packets.
    LinkQueue,
    /// Waiting for a retransmission: timers, loss detection, and the hole it leaves.
    LossRecovery,
    /// Held back by the sender's window or by Nagle's algorithm.
    SendWait,
    /// Deliberate waiting of the pattern (gaps, think time).
    Idle,
}

impl Stage {
    /// All stages, in the order of a waterfall.
    pub const ALL: [Stage; 12] = [
        Stage::ClientCompute,
        Stage::ClientSystem,
        Stage::ServerCompute,
        Stage::ServerSystem,
        Stage::KeyStore,
        Stage::ResourceQueue,
        Stage::Propagation,
        Stage::Serialisation,
        Stage::LinkQueue,
        Stage::LossRecovery,
        Stage::SendWait,
        Stage::Idle,
    ];

    /// Its snake_case name, as stored in observations.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::ClientCompute => "client_compute",
            Stage::ClientSystem => "client_system",
            Stage::ServerCompute => "server_compute",
            Stage::ServerSystem => "server_system",
            Stage::KeyStore => "key_store",
            Stage::ResourceQueue => "resource_queue",
            Stage::Propagation => "propagation",
            Stage::Serialisation => "serialisation",
            Stage::LinkQueue => "link_queue",
            Stage::LossRecovery => "loss_recovery",
            Stage::SendWait => "send_wait",
            Stage::Idle => "idle",
        }
    }
}
