// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One request and its response, from preparation to the end.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::outcome::{Datagram, Direction, Outcome};
use crate::record::{End, Observed, Record, code_text, is_success};

/// Spreads the trials' seeds: 2^64 over the golden ratio, as SplitMix64 does.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// An exchange: `start` is called once, then `process` whenever its descriptor is readable, until
/// `is_over` says so. Then `outcome` says what became of it.
pub(crate) struct Exchange {
    // Freed before the record: libcoap may call back meanwhile.
    context: Context,
    observed: Observed,
    token: Vec<u8>,
    pub trial: u32,
    pub late_ns: u64,
    uploads: bool,
    /// Why there was no exchange.
    refused: Option<String>,
    port: u16,
}

impl Exchange {
    /// Makes everything that a device has before its clock starts.
    pub(crate) fn prepare(trial: u32, config: &Config) -> Result<Exchange, Error> {
        let step = SEED_STEP.wrapping_mul(u64::from(trial) + 1);
        let observed = Observed::new(config.seed.wrapping_add(step));
        let context = observed.during(Context::new)?;
        let mut token = vec![0; usize::from(config.token_bytes)];
        observed.with(|record| record.draw(&mut token));
        Ok(Exchange {
            context,
            observed,
            token,
            trial,
            late_ns: 0,
            uploads: config.request_body > 0,
            refused: None,
            port: 0,
        })
    }

    /// Starts the clock, makes the session and sends the request.
    pub(crate) fn start(&mut self, config: &Config) {
        self.observed.with(Record::start);
        let sent = self.observed.during(|| self.context.request(config, &self.token));
        self.refused = sent.err();
        self.port = self.context.port();
    }

    /// Has libcoap do what there is to do.
    pub(crate) fn process(&mut self) {
        self.observed.during(|| self.context.process());
    }

    /// Whether there is nothing more to wait for: it has failed, or its response has come and a
    /// second one is not to be expected, or `timeout` is over.
    pub(crate) fn is_over(&self, now: Instant, timeout: Duration, linger: Duration) -> bool {
        if self.refused.is_some() {
            return true;
        }
        self.observed.with(|record| {
            let age = now.saturating_duration_since(record.begun());
            match record.end {
                None => age >= timeout,
                Some(End::Failure(_)) => true,
                Some(End::Response { at_ns, .. }) => {
                    let is_alone = record.retransmissions().next().is_none();
                    is_alone || age >= Duration::from_nanos(at_ns) + linger
                }
            }
        })
    }

    /// What became of it; with all datagrams if asked for.
    pub(crate) fn outcome(&self, datagrams: bool) -> Outcome {
        self.observed.with(|record| {
            let (done_ns, until, body_bytes) = match record.end {
                Some(End::Response { at_ns, datagrams, body_bytes, .. }) => {
                    (at_ns, datagrams, body_bytes)
                }
                _ => (0, record.datagrams.len(), 0),
            };
            let (sent, datagrams_sent) = sum(&record.datagrams[..until], Direction::Sent);
            let (received, datagrams_received) =
                sum(&record.datagrams[..until], Direction::Received);
            let request = record.datagrams.iter().find(|one| one.direction == Direction::Sent);
            Outcome {
                trial: self.trial,
                error: self.error(record),
                late_ns: self.late_ns,
                request_ns: request.map_or(0, |datagram| datagram.at_ns),
                acknowledged_ns: record.acknowledged_ns().unwrap_or(0),
                first_ns: record.response_ns().unwrap_or(0),
                done_ns,
                sent,
                received,
                datagrams_sent,
                datagrams_received,
                sent_all: sum(&record.datagrams, Direction::Sent).0,
                received_all: sum(&record.datagrams, Direction::Received).0,
                retransmitted: u32::try_from(record.retransmissions().count()).unwrap_or(u32::MAX),
                retransmitted_bytes: record.retransmissions().map(|one| one.bytes).sum(),
                unreachable: record.unreachable,
                body_bytes,
                port: self.port,
                datagrams: if datagrams { record.datagrams.clone() } else { Vec::new() },
            }
        })
    }

    fn error(&self, record: &Record) -> Option<String> {
        match (record.end, &self.refused) {
            (Some(End::Response { code, .. }), _) if is_success(code, self.uploads) => None,
            (Some(End::Response { code, .. }), _) => {
                Some(format!("the server answered {}", code_text(code)))
            }
            // libcoap reports neither an RST nor an ICMP message to whoever sent a NON, and goes on
            // sending a CON after an ICMP message.
            (_, None) if record.was_reset() => Some("reset".into()),
            (_, None) if record.unreachable > 0 => Some("unreachable".into()),
            (Some(End::Failure(why)), _) => Some(why.into()),
            (None, Some(why)) => Some(why.clone()),
            (None, None) => Some("timeout".into()),
        }
    }
}

impl AsFd for Exchange {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.context.as_fd()
    }
}

/// Bytes and number of the datagrams in a direction.
fn sum(datagrams: &[Datagram], direction: Direction) -> (u64, u32) {
    let those = datagrams.iter().filter(|one| one.direction == direction);
    those.fold((0, 0), |(bytes, count), one| (bytes + one.bytes, count + 1))
}
