// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Transports to a card: each takes a command APDU and returns the answer, or an error by the
//! deadline.

mod local;
mod modem;
mod pcsc;
mod permission;
mod unix;

pub use local::Local;
pub use modem::{ChannelRecord, Modem};
pub use pcsc::{Pcsc, readers};
pub use permission::permission_denied;
pub use unix::Unix;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use warifu_card::apdu::Command;

/// Why an APDU was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum TransportError {
    /// There is no card, reader, modem or server, or it was removed; the text says which and how to
    /// fix it.
    #[error("{0}")]
    Gone(String),
    /// The deadline has passed. The answer may still arrive: [`Transport::reset`] must follow.
    #[error("no answer from {0} within the deadline")]
    Timeout(String),
    /// The card was reset by another program: its channels and sessions are lost.
    #[error("the card was reset")]
    CardReset,
    /// The other side answered with something other than an APDU.
    #[error("{0}")]
    Garbled(String),
    /// The modem does not forward the APDU.
    #[error("{0}")]
    Refused(String),
}

impl TransportError {
    /// Whether a reset must come first, because late answers could be taken for current ones.
    #[must_use]
    pub fn needs_reset(&self) -> bool {
        !matches!(self, TransportError::CardReset | TransportError::Refused(_))
    }
}

/// A transport to one card.
///
/// An implementation never returns the answer to one command for another: after an error that
/// [needs a reset](TransportError::needs_reset) it refuses every exchange until
/// [`reset`](Transport::reset) has discarded pending answers.
pub trait Transport: Send {
    /// Connects, if not connected. The first exchange would connect too, but return
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

    /// Connects again if needed, and resets the card if the transport can. Returns the answer to
    /// reset; empty if the transport has none.
    ///
    /// # Errors
    /// [`TransportError`], by the deadline at the latest.
    fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError>;

    /// Whether [`Transport::reset`] resets the card. If not, as behind a modem, the card keeps
    /// channels open and the PIN verified, and the basic channel belongs to the modem.
    fn resets_card(&self) -> bool {
        true
    }

    /// Whether other programs may be on the same logical channel, and may so have selected
    /// something else there between two of our commands.
    fn shares_channels(&self) -> bool {
        true
    }

    /// Excludes other programs until [`Transport::end`], if the transport can.
    ///
    /// # Errors
    /// [`TransportError`], by the deadline at the latest.
    fn begin(&mut self, _deadline: Instant) -> Result<(), TransportError> {
        Ok(())
    }

    /// Lets other programs at the card again.
    fn end(&mut self) {}

    /// Whether channels are opened by an application's identifier, with
    /// [`Transport::open_by_aid`]; asked where MANAGE CHANNEL is refused. If so, commands go that
    /// way from now on.
    ///
    /// # Errors
    /// [`TransportError`], by the deadline at the latest.
    fn opens_by_aid(&mut self, _deadline: Instant) -> Result<bool, TransportError> {
        Ok(false)
    }

    /// Opens a channel with this application selected; returns its number.
    ///
    /// # Errors
    /// [`TransportError`], by the deadline at the latest.
    fn open_by_aid(&mut self, _aid: &[u8], _deadline: Instant) -> Result<u8, TransportError> {
        let text = format!("{} opens no channels by an identifier", self.name());
        Err(TransportError::Refused(text))
    }

    /// A channel was opened for this process, on a card that [`Transport::reset`] does not reset.
    fn channel_opened(&mut self, _channel: u8) {}

    /// A channel was closed.
    fn channel_closed(&mut self, _channel: u8) {}

    /// Channels that other processes have opened and, having been killed, will not close.
    fn orphaned_channels(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Where it leads, for people: `unix:/run/user/1000/warifu-card.sock`.
    fn name(&self) -> String;
}

/// One exchange as [`Watched`] saw it: of its content only the header and the status word.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// The name of the request, if it was sent to the agent.
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

/// Called after every exchange.
pub type Watch = Arc<dyn Fn(&Exchange) + Send + Sync>;

/// A transport with a [`Watch`].
pub struct Watched {
    inner: Box<dyn Transport>,
    watch: Watch,
}

impl Watched {
    /// Adds a watch to a transport.
    #[must_use]
    pub fn new(inner: Box<dyn Transport>, watch: Watch) -> Watched {
        Watched { inner, watch }
    }

    fn notify(&self, apdu: &[u8], start: Instant, answer: &Result<Vec<u8>, TransportError>) {
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
        self.notify(apdu, start, &answer);
        answer
    }

    fn connect(&mut self, deadline: Instant) -> Result<(), TransportError> {
        self.inner.connect(deadline)
    }

    fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError> {
        let start = Instant::now();
        let answer = self.inner.reset(deadline);
        self.notify(&[], start, &answer);
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

    fn opens_by_aid(&mut self, deadline: Instant) -> Result<bool, TransportError> {
        self.inner.opens_by_aid(deadline)
    }

    fn open_by_aid(&mut self, aid: &[u8], deadline: Instant) -> Result<u8, TransportError> {
        self.inner.open_by_aid(aid, deadline)
    }

    fn channel_opened(&mut self, channel: u8) {
        self.inner.channel_opened(channel);
    }

    fn channel_closed(&mut self, channel: u8) {
        self.inner.channel_closed(channel);
    }

    fn orphaned_channels(&mut self) -> Vec<u8> {
        self.inner.orphaned_channels()
    }

    fn name(&self) -> String {
        self.inner.name()
    }
}

/// Refuses an answer without a status word.
fn checked(answer: Vec<u8>, name: &str) -> Result<Vec<u8>, TransportError> {
    if answer.len() < 2 {
        return Err(TransportError::Garbled(format!("answer without a status word from {name}")));
    }
    Ok(answer)
}

/// Removes Le from a command with data: modems use T=0 with the SIM, where Le cannot follow data
/// (ISO 7816-3 section 12.2.2); GET RESPONSE fetches the answer.
fn without_le(apdu: &[u8]) -> &[u8] {
    match Command::parse(apdu) {
        Ok(Command { data, le: Some(_), .. }) if !data.is_empty() && apdu[4] != 0 => {
            &apdu[..apdu.len() - 1]
        }
        _ => apdu,
    }
}
