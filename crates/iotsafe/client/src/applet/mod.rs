// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The applet on a logical channel: commands, and answers assembled from their parts.

mod channel;
mod idle;

pub use channel::{Channel, ChannelPolicy};

use std::time::Instant;

use warifu_card::apdu::{Command, Response, SHORT_ANSWER_MAX_BYTES, StatusWord};
use warifu_card::ins;
use zeroize::Zeroizing;

use crate::error::TokenError;
use crate::transport::{Transport, TransportError};

/// The most bytes of data in one short command.
const SHORT_DATA_MAX_BYTES: usize = 255;
/// The most bytes of an answer in all its parts, enough for an object list of 128 templates.
const ANSWER_MAX_BYTES: usize = 0x1_0000;
/// Command chaining, in the class byte (ISO 7816-4 section 5.4.1).
const CHAINED: u8 = 0x10;
/// Proprietary class (GSMA IoT.05).
const PROPRIETARY: u8 = 0x80;

/// Options of a card.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The applet's identifier; by default the three known ones are tried.
    pub aid: Option<Vec<u8>>,
    /// The channel.
    pub channel: ChannelPolicy,
    /// Whether the program allows no threads of ours (CKF_LIBRARY_CANT_CREATE_OS_THREADS).
    pub no_threads: bool,
}

/// The applet and its selection.
pub(crate) struct Applet {
    transport: Box<dyn Transport>,
    options: Options,
    selected: Option<Selected>,
    /// An answer may be pending: a reset comes before the next command.
    stale: bool,
    /// Channels that may still be open on a card that cannot be reset.
    left_open: Vec<Channel>,
}

/// A selected applet.
#[derive(Clone)]
pub(crate) struct Selected {
    pub(crate) aid: Vec<u8>,
    channel: Channel,
    opened: bool,
}

/// A command of the applet without its class.
pub(crate) struct Call<'a> {
    pub(crate) name: &'static str,
    pub(crate) ins: u8,
    pub(crate) p1: u8,
    pub(crate) p2: u8,
    pub(crate) data: &'a [u8],
    /// Whether an answer with data is expected.
    pub(crate) answers: bool,
}

impl Applet {
    pub(crate) fn new(transport: Box<dyn Transport>, options: Options) -> Applet {
        Applet { transport, options, selected: None, stale: false, left_open: Vec::new() }
    }

    pub(crate) fn location(&self) -> String {
        self.transport.name()
    }

    /// Forgets the channel, which is lost; the next command opens one.
    pub(crate) fn forget(&mut self) {
        self.selected = None;
    }

    /// Resets the card, or only the transport if that cannot reset the card.
    pub(crate) fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TokenError> {
        self.abandon();
        self.stale = true;
        let atr = self.reset_transport(deadline)?;
        self.close_left_open(deadline)?;
        Ok(atr)
    }

    /// Whether other programs may use the same channel between two commands.
    pub(crate) fn shared_channel(&self) -> bool {
        let basic = |selected: &Selected| selected.channel == Channel::BASIC;
        self.transport.shares_channels() && self.selected.as_ref().is_none_or(basic)
    }

    pub(crate) fn begin(&mut self, deadline: Instant) -> Result<(), TokenError> {
        match self.transport.begin(deadline) {
            Err(TransportError::CardReset) => {
                self.selected = None;
                Ok(self.transport.begin(deadline)?)
            }
            other => Ok(other?),
        }
    }

    pub(crate) fn end(&mut self) {
        self.transport.end();
    }

    /// Sends a command of the applet; every status word other than 9000 is an error.
    pub(crate) fn call(
        &mut self,
        call: &Call<'_>,
        deadline: Instant,
    ) -> Result<Vec<u8>, TokenError> {
        let response = self.call_any(call, deadline)?;
        if response.sw == StatusWord::OK {
            Ok(response.data)
        } else {
            Err(TokenError::status(call.name, response.sw))
        }
    }

    /// Sends a command of the applet, and returns any status word.
    pub(crate) fn call_any(
        &mut self,
        call: &Call<'_>,
        deadline: Instant,
    ) -> Result<Response, TokenError> {
        let le = call.answers.then_some(SHORT_ANSWER_MAX_BYTES);
        self.call_with_le(call, le, deadline)
    }

    /// Sends a command with a given Le, as GET RANDOM needs.
    pub(crate) fn call_with_le(
        &mut self,
        call: &Call<'_>,
        le: Option<usize>,
        deadline: Instant,
    ) -> Result<Response, TokenError> {
        let channel = self.select(deadline)?.channel;
        // VERIFY is of ISO 7816-4; all others are proprietary.
        let cla = channel.class(if call.ins == ins::VERIFY { 0 } else { PROPRIETARY });
        let mut parts = call.data.chunks(SHORT_DATA_MAX_BYTES).peekable();
        let mut last: &[u8] = &[];
        while let Some(data) = parts.next() {
            last = data;
            if parts.peek().is_none() {
                break;
            }
            let Call { ins, p1, p2, .. } = *call;
            let command = Command { cla: cla | CHAINED, ins, p1, p2, data, le: None };
            let response = self.exchange(&command, deadline)?;
            if response.sw != StatusWord::OK {
                return Ok(response);
            }
        }
        let Call { ins, p1, p2, .. } = *call;
        let command = Command { cla, ins, p1, p2, data: last, le };
        self.whole_answer(&command, channel, deadline)
    }

    /// Sends a command; fetches the rest of the answer after 61xx, repeats it with the Le of 6Cxx.
    fn whole_answer(
        &mut self,
        command: &Command<'_>,
        channel: Channel,
        deadline: Instant,
    ) -> Result<Response, TokenError> {
        let mut response = self.exchange(command, deadline)?;
        if response.sw.0 >> 8 == 0x6c {
            let le = Some(le_of(response.sw));
            response = self.exchange(&Command { le, ..*command }, deadline)?;
        }
        let mut data = std::mem::take(&mut response.data);
        while let Some(waiting) = response.sw.waiting() {
            if data.len() > ANSWER_MAX_BYTES {
                let what = "does not end";
                return Err(TokenError::answer("GET RESPONSE", what));
            }
            let (cla, ins) = (channel.class(0), ins::GET_RESPONSE);
            let more = Command { cla, ins, p1: 0, p2: 0, data: &[], le: Some(waiting) };
            response = self.exchange(&more, deadline)?;
            if response.sw.0 >> 8 == 0x6c {
                let le = Some(le_of(response.sw));
                response = self.exchange(&Command { le, ..more }, deadline)?;
            }
            let empty = response.data.is_empty();
            data.append(&mut response.data);
            if empty && response.sw.waiting().is_some() {
                let what = "announces data but contains none";
                return Err(TokenError::answer("GET RESPONSE", what));
            }
        }
        Ok(Response { data, sw: response.sw })
    }

    /// What an error of the transport means for the channels.
    fn noted<T>(&mut self, result: Result<T, TransportError>) -> Result<T, TokenError> {
        Ok(self.forget_if_gone(result).inspect_err(|error| {
            self.abandon();
            self.stale |= error.needs_reset();
        })?)
    }

    fn exchange(
        &mut self,
        command: &Command<'_>,
        deadline: Instant,
    ) -> Result<Response, TokenError> {
        // The command may contain a PIN, the answer a secret.
        let command = Zeroizing::new(command.to_bytes());
        let answer = self.transport.exchange(&command, deadline);
        let mut data = self.noted(answer)?;
        let Some(sw) = data.len().checked_sub(2).map(|at| data.split_off(at)) else {
            let what = "has no status word";
            return Err(TokenError::answer("the command", what));
        };
        Ok(Response { data, sw: StatusWord(u16::from_be_bytes([sw[0], sw[1]])) })
    }
}

/// The Le in a status word 6Cxx.
fn le_of(sw: StatusWord) -> usize {
    match sw.0 & 0xff {
        0 => SHORT_ANSWER_MAX_BYTES,
        le => usize::from(le),
    }
}
