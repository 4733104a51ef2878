// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ways to a card: each takes a command APDU and gives the answer, or a definite error by the
//! deadline.

mod csim;
mod local;
mod pcsc;
mod unix;

pub use csim::Csim;
pub use local::Local;
pub use pcsc::{Pcsc, readers};
pub use unix::Unix;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Why an APDU got no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum TransportError {
    /// There is no card, reader, modem or server, or it went away. Says which, and the mend.
    #[error("{0}")]
    Gone(String),
    /// The deadline passed. The answer may still come: only [`Transport::reset`] leads on.
    #[error("no answer from {0} within the deadline")]
    Timeout(String),
    /// The card was reset by someone else: its channels are closed, its sessions forgotten.
    #[error("the card was reset")]
    CardReset,
    /// The other side answered with something else than an APDU.
    #[error("{0}")]
    Garbled(String),
    /// The modem does not pass the APDU on.
    #[error("{0}")]
    Refused(String),
}

impl TransportError {
    /// Whether answers can no longer be told from late ones, so that a reset comes first.
    #[must_use]
    pub fn needs_reset(&self) -> bool {
        !matches!(self, TransportError::CardReset | TransportError::Refused(_))
    }
}

/// A way to one card.
///
/// An implementation never gives the answer of one command to another: after an error that
/// [needs a reset](TransportError::needs_reset) it refuses every exchange until
/// [`reset`](Transport::reset) has thrown away what was under way.
pub trait Transport: Send {
    /// Connects, if it is not connected; the first exchange would do so, but then says
    /// [`TransportError::CardReset`].
    ///
    /// # Errors
    /// [`TransportError`], by the deadline at the latest.
    fn connect(&mut self, _deadline: Instant) -> Result<(), TransportError> {
        Ok(())
    }

    /// Sends a command APDU and waits for its answer, data and status word, at least 2 bytes.
    ///
    /// # Errors
    /// [`TransportError`], by the deadline at the latest.
    fn exchange(&mut self, apdu: &[u8], deadline: Instant) -> Result<Vec<u8>, TransportError>;

    /// Starts anew: connects again where needed, and resets the card where the way can do that.
    /// Gives the answer to reset; empty where the way has none.
    ///
    /// # Errors
    /// [`TransportError`], by the deadline at the latest.
    fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError>;

    /// Whether [`Transport::reset`] resets the card. Where it does not, the card keeps channels open
    /// and the PIN verified, and its basic channel is of someone who needs it: a modem.
    fn resets_card(&self) -> bool {
        true
    }

    /// Whether other programs may be on the same logical channel, and may so have selected
    /// something else there between two of our commands.
    fn shares_channels(&self) -> bool {
        true
    }

    /// Keeps other programs from the card until [`Transport::end`], where the way can do that.
    ///
    /// # Errors
    /// [`TransportError`], by the deadline at the latest.
    fn begin(&mut self, _deadline: Instant) -> Result<(), TransportError> {
        Ok(())
    }

    /// Lets other programs at the card again.
    fn end(&mut self) {}

    /// Where it leads, for people: `unix:/run/user/1000/warifu-card.sock`.
    fn name(&self) -> String;
}

/// One exchange as [`Watched`] saw it; nothing of its content but header and status word.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// What the agent was asked for, where it was the agent.
    pub name: Option<&'static str>,
    /// CLA, INS, P1, P2; None for a reset.
    pub header: Option<[u8; 4]>,
    /// Length of the command, bytes.
    pub command_bytes: usize,
    /// Length of the answer, bytes; 0 where there was none.
    pub answer_bytes: usize,
    /// The status word; None where there was no answer.
    pub sw: Option<u16>,
    /// When it began.
    pub start: Instant,
    /// How long it took.
    pub duration: Duration,
}

/// Told of every exchange.
pub type Watch = Arc<dyn Fn(&Exchange) + Send + Sync>;

/// A transport that tells a [`Watch`] of every exchange.
pub struct Watched {
    inner: Box<dyn Transport>,
    watch: Watch,
}

impl Watched {
    /// Puts a watch on a transport.
    #[must_use]
    pub fn new(inner: Box<dyn Transport>, watch: Watch) -> Watched {
        Watched { inner, watch }
    }

    fn tell(&self, apdu: &[u8], start: Instant, answer: &Result<Vec<u8>, TransportError>) {
        let answer = answer.as_deref().unwrap_or_default();
        let header = apdu.first_chunk().copied();
        (self.watch)(&Exchange {
            name: None,
            header,
            command_bytes: apdu.len(),
            answer_bytes: answer.len(),
            sw: header.and(answer.last_chunk()).map(|sw| u16::from_be_bytes(*sw)),
            start,
            duration: start.elapsed(),
        });
    }
}

impl Transport for Watched {
    fn exchange(&mut self, apdu: &[u8], deadline: Instant) -> Result<Vec<u8>, TransportError> {
        let start = Instant::now();
        let answer = self.inner.exchange(apdu, deadline);
        self.tell(apdu, start, &answer);
        answer
    }

    fn connect(&mut self, deadline: Instant) -> Result<(), TransportError> {
        self.inner.connect(deadline)
    }

    fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError> {
        let start = Instant::now();
        let answer = self.inner.reset(deadline);
        self.tell(&[], start, &answer);
        answer
    }

    fn resets_card(&self) -> bool {
        self.inner.resets_card()
    }

    fn shares_channels(&self) -> bool {
        self.inner.shares_channels()
    }

    fn begin(&mut self, deadline: Instant) -> Result<(), TransportError> {
        self.inner.begin(deadline)
    }

    fn end(&mut self) {
        self.inner.end();
    }

    fn name(&self) -> String {
        self.inner.name()
    }
}

/// What an answer must at least be.
fn checked(answer: Vec<u8>, name: &str) -> Result<Vec<u8>, TransportError> {
    if answer.len() < 2 {
        return Err(TransportError::Garbled(format!("{name} answered without a status word")));
    }
    Ok(answer)
}
