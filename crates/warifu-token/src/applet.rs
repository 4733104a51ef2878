// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The applet on a logical channel: opening, selecting, commands with their answers put together.

use std::thread;
use std::time::{Duration, Instant};

use warifu_card::apdu::{Command, Response, SHORT_ANSWER_MAX_BYTES, StatusWord};
use warifu_card::{AIDS, ins};

use zeroize::Zeroizing;

use crate::error::TokenError;
use crate::transport::{Transport, TransportError};

/// The most bytes of data in one short command.
const SHORT_DATA_MAX_BYTES: usize = 255;
/// The most bytes that an answer may have in all its parts: an object list of 128 templates.
const ANSWER_MAX_BYTES: usize = 0x1_0000;
/// How long a card is asked for a channel when all are taken, and how long apart.
const CHANNEL_PATIENCE: Duration = Duration::from_secs(1);
const CHANNEL_WAIT: Duration = Duration::from_millis(20);
/// Command chaining, in the class byte (ISO 7816-4 section 5.4.1).
const CHAINED: u8 = 0x10;
/// Proprietary class (GSMA IoT.05).
const PROPRIETARY: u8 = 0x80;

/// A logical channel, 0 to 19.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel(u8);

/// On which channel the applet is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelPolicy {
    /// One that MANAGE CHANNEL opens; the basic one if the card has no such command.
    #[default]
    Open,
    /// The basic channel: for cards without logical channels. Others must not use it meanwhile.
    Basic,
    /// One of this number, not opened before: some clients and cards do that.
    Fixed(Channel),
}

/// How a card is used.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The applet's identifier; the three known ones are tried otherwise.
    pub aid: Option<Vec<u8>>,
    /// The channel.
    pub channel: ChannelPolicy,
}

impl Channel {
    /// The basic channel.
    pub const BASIC: Channel = Channel(0);

    /// The channel of a number, if there is one.
    #[must_use]
    pub fn new(number: u8) -> Option<Channel> {
        (number <= 19).then_some(Channel(number))
    }

    /// The class byte (ISO 7816-4 section 5.4.1: channels from 4 on have four bits of their own).
    fn class(self, base: u8) -> u8 {
        match self.0 {
            number @ 0..=3 => base | number,
            number => base | 0x40 | (number - 4),
        }
    }
}

/// The applet, selected or not yet.
pub(crate) struct Applet {
    transport: Box<dyn Transport>,
    options: Options,
    selected: Option<Selected>,
    /// An answer may be under way: nothing is sent before a reset.
    stale: bool,
    /// Channels that the card may still have open for us, where no reset closes them.
    left_open: Vec<Channel>,
}

/// What was selected, and where.
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

    pub(crate) fn place(&self) -> String {
        self.transport.name()
    }

    /// What is selected. Opens and selects if need be.
    pub(crate) fn select(&mut self, deadline: Instant) -> Result<Selected, TokenError> {
        if let Some(selected) = &self.selected {
            return Ok(selected.clone());
        }
        if self.stale {
            self.transport.reset(deadline)?;
            self.stale = false;
        }
        self.transport.connect(deadline)?;
        self.close_left_open(deadline)?;
        let give_up = deadline.min(Instant::now() + CHANNEL_PATIENCE);
        let mut was_reset = false;
        let selected = loop {
            match self.open_and_select(deadline) {
                // Another program may have reset the card since; then once more.
                Err(TokenError::Transport(TransportError::CardReset)) if !was_reset => {
                    was_reset = true;
                }
                // Short-lived programs give their channels back soon.
                Err(TokenError::NoChannel) if Instant::now() < give_up => {
                    thread::sleep(CHANNEL_WAIT);
                }
                result => break result?,
            }
        };
        self.selected = Some(selected.clone());
        Ok(selected)
    }

    /// Forgets the channel, which the card has forgotten; the next command opens one.
    pub(crate) fn forget(&mut self) {
        self.selected = None;
    }

    /// Resets the card, or as much of it as the way there can.
    pub(crate) fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TokenError> {
        self.abandon();
        self.stale = true;
        let atr = self.transport.reset(deadline)?;
        self.stale = false;
        self.close_left_open(deadline)?;
        Ok(atr)
    }

    /// Leaves the channel without knowing that the card has closed it.
    fn abandon(&mut self) {
        if let Some(Selected { channel, opened, .. }) = self.selected.take() {
            self.leave_open(channel, opened);
        }
    }

    fn leave_open(&mut self, channel: Channel, opened: bool) {
        if opened && !self.transport.resets_card() {
            self.left_open.push(channel);
        }
    }

    /// A card that no reset reaches has few channels, and would run out of them.
    fn close_left_open(&mut self, deadline: Instant) -> Result<(), TokenError> {
        while let Some(channel) = self.left_open.last().copied() {
            // Whatever the card answers, there is no more to be done about this one.
            self.exchange(&close_command(channel), deadline)?;
            self.left_open.pop();
        }
        Ok(())
    }

    /// Gives the channel back to the card, as far as that can be done.
    pub(crate) fn close(&mut self, deadline: Instant) {
        if let Some(Selected { channel, opened: true, .. }) = self.selected.take() {
            // Nothing depends on it just now: a card that is gone has closed it.
            if self.exchange(&close_command(channel), deadline).is_err() {
                self.leave_open(channel, true);
            }
        }
    }

    /// Whether others might use the same channel between two of our commands.
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

    /// One command of the applet; every status word but 9000 is an error.
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

    /// One command of the applet, whatever its status word.
    pub(crate) fn call_any(
        &mut self,
        call: &Call<'_>,
        deadline: Instant,
    ) -> Result<Response, TokenError> {
        let le = call.answers.then_some(SHORT_ANSWER_MAX_BYTES);
        self.call_with_le(call, le, deadline)
    }

    /// One command with an Le of its own, as GET RANDOM needs.
    pub(crate) fn call_with_le(
        &mut self,
        call: &Call<'_>,
        le: Option<usize>,
        deadline: Instant,
    ) -> Result<Response, TokenError> {
        let channel = self.select(deadline)?.channel;
        // VERIFY is ISO 7816-4's, all the others are the applet's own.
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

    /// Sends a command; fetches what waits behind 61xx, sends again with the Le of 6Cxx.
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
                let what = "announces data and gives none";
                return Err(TokenError::answer("GET RESPONSE", what));
            }
        }
        Ok(Response { data, sw: response.sw })
    }

    fn exchange(
        &mut self,
        command: &Command<'_>,
        deadline: Instant,
    ) -> Result<Response, TokenError> {
        // It may be VERIFY, or the answer a secret.
        let command = Zeroizing::new(command.to_bytes());
        let answer = self.transport.exchange(&command, deadline);
        let mut data = answer.inspect_err(|error| {
            if matches!(error, TransportError::Gone(_)) {
                // A modem that was unplugged has taken its card's channels along, and may have
                // others of these numbers open when it is back.
                self.selected = None;
                self.left_open.clear();
            }
            self.abandon();
            self.stale |= error.needs_reset();
        })?;
        let Some(sw) = data.len().checked_sub(2).map(|at| data.split_off(at)) else {
            let what = "has no status word";
            return Err(TokenError::answer("a command", what));
        };
        Ok(Response { data, sw: StatusWord(u16::from_be_bytes([sw[0], sw[1]])) })
    }

    fn open_and_select(&mut self, deadline: Instant) -> Result<Selected, TokenError> {
        let (channel, opened) = match self.options.channel {
            ChannelPolicy::Basic => (Channel::BASIC, false),
            ChannelPolicy::Fixed(channel) => (channel, false),
            ChannelPolicy::Open => self.open_channel(deadline)?,
        };
        let own: Vec<Vec<u8>> = match &self.options.aid {
            Some(aid) => vec![aid.clone()],
            None => AIDS.iter().map(|aid| aid.to_vec()).collect(),
        };
        let mut last = StatusWord::NOT_FOUND;
        for aid in &own {
            // Without Le: no file control information is wanted, and modems pass it on like this.
            let cla = channel.class(0);
            let select = Command { cla, ins: ins::SELECT, p1: 4, p2: 0, data: aid, le: None };
            let answer = self.exchange(&select, deadline);
            last = match answer {
                Ok(answer) => answer.sw,
                Err(error) => {
                    self.leave_open(channel, opened);
                    return Err(error);
                }
            };
            if !last.is_error() {
                return Ok(Selected { aid: aid.clone(), channel, opened });
            }
            if matches!(last, StatusWord::CHANNEL_NOT_SUPPORTED | StatusWord::NO_CHANNEL) {
                break;
            }
        }
        if opened {
            self.selected = Some(Selected { aid: Vec::new(), channel, opened });
            self.close(deadline);
        }
        if matches!(last, StatusWord::CHANNEL_NOT_SUPPORTED | StatusWord::NO_CHANNEL) {
            return Err(TokenError::NoChannel);
        }
        Err(TokenError::NoApplet { tried: own.len(), last })
    }

    fn open_channel(&mut self, deadline: Instant) -> Result<(Channel, bool), TokenError> {
        let open =
            Command { cla: 0, ins: ins::MANAGE_CHANNEL, p1: 0, p2: 0, data: &[], le: Some(1) };
        let response = self.whole_answer(&open, Channel::BASIC, deadline)?;
        match (response.sw, &response.data[..]) {
            // The basic channel needs no opening (ISO 7816-4 section 11.1.2): such an answer is damaged.
            (StatusWord::OK, [number, ..]) => match Channel::new(*number).filter(|_| *number > 0) {
                Some(channel) => Ok((channel, true)),
                None => {
                    let what = "names no channel";
                    Err(TokenError::answer("MANAGE CHANNEL", what))
                }
            },
            // Nothing is known of what was done: the caller starts anew.
            (sw @ StatusWord::UNKNOWN, _) => Err(TokenError::status("MANAGE CHANNEL", sw)),
            // On the basic channel a modem has its own application selected: it stays there.
            (StatusWord::NO_CHANNEL, _) if !self.transport.resets_card() => {
                Err(TokenError::NoChannel)
            }
            (sw, _) if sw.is_error() && !self.transport.resets_card() => {
                Err(TokenError::status("MANAGE CHANNEL", sw))
            }
            // A card without the command has only the basic channel. One whose channels are all
            // taken, perhaps by programs that were killed, has it as well.
            (sw, _) if sw.is_error() => Ok((Channel::BASIC, false)),
            _ => Err(TokenError::answer("MANAGE CHANNEL", "names no channel")),
        }
    }
}

fn close_command(channel: Channel) -> Command<'static> {
    Command { cla: 0, ins: ins::MANAGE_CHANNEL, p1: 0x80, p2: channel.0, data: &[], le: None }
}

/// The Le that a 6Cxx names.
fn le_of(sw: StatusWord) -> usize {
    match sw.0 & 0xff {
        0 => SHORT_ANSWER_MAX_BYTES,
        le => usize::from(le),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_channels() {
        let classes = [(0, 0x80), (1, 0x81), (3, 0x83), (4, 0xc0), (19, 0xcf)];
        for (number, class) in classes {
            assert_eq!(Channel::new(number).unwrap().class(PROPRIETARY), class);
        }
        assert_eq!(Channel::new(20), None);
    }
}
