// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Logical channels: opening one and selecting the applet, closing it, and recovering one whose
//! answer was lost.

use std::ops::RangeInclusive;
use std::thread;
use std::time::{Duration, Instant};

use warifu_card::apdu::{Command, StatusWord};
use warifu_card::{AIDS, ins};

use super::{Applet, Selected};
use crate::error::TokenError;
use crate::transport::TransportError;

/// How long to wait for a channel when all are in use, and how long between attempts.
const CHANNEL_TIMEOUT: Duration = Duration::from_secs(1);
const CHANNEL_PAUSE: Duration = Duration::from_millis(20);

/// The numbers of the channels other than the basic one (ISO 7816-4 section 5.4.1).
pub(super) const LOGICAL_CHANNELS: RangeInclusive<u8> = 1..=19;

/// A logical channel, 0 to 19.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel(pub(super) u8);

/// The channel to use the applet on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelPolicy {
    /// One that MANAGE CHANNEL opens; the basic one if the card has no such command.
    #[default]
    Open,
    /// The basic channel, for cards without logical channels; no other program may use it.
    Basic,
    /// The channel of this number without opening it, as some cards expect.
    Fixed(Channel),
}

impl Channel {
    /// The basic channel.
    pub const BASIC: Channel = Channel(0);

    /// The channel of a number, if there is one.
    #[must_use]
    pub fn new(number: u8) -> Option<Channel> {
        (number <= *LOGICAL_CHANNELS.end()).then_some(Channel(number))
    }

    /// The class byte (ISO 7816-4 section 5.4.1: channels from 4 on have four bits of their own).
    pub(super) fn class(self, base: u8) -> u8 {
        match self.0 {
            number @ 0..=3 => base | number,
            number => base | 0x40 | (number - 4),
        }
    }
}

impl Applet {
    /// The selection; opens a channel and selects the applet if needed.
    pub(crate) fn select(&mut self, deadline: Instant) -> Result<Selected, TokenError> {
        if let Some(selected) = &self.selected {
            return Ok(selected.clone());
        }
        self.resynchronise(deadline)?;
        let connected = self.transport.connect(deadline);
        self.forget_if_gone(connected)?;
        self.close_left_open(deadline)?;
        self.close_orphaned(deadline)?;
        let give_up = deadline.min(Instant::now() + CHANNEL_TIMEOUT);
        let mut was_reset = false;
        let mut idle = None;
        let selected = loop {
            match self.open_and_select(deadline) {
                // Another program may have reset the card: once more.
                Err(TokenError::Transport(TransportError::CardReset)) if !was_reset => {
                    was_reset = true;
                }
                // Short-lived programs close their channels soon.
                Err(TokenError::NoChannel) if Instant::now() < give_up => {
                    if idle.is_none() && self.may_lose_channels() {
                        idle = Some(self.idle_channels(deadline)?);
                    }
                    thread::sleep(CHANNEL_PAUSE);
                }
                Err(TokenError::NoChannel) if idle.is_some() => {
                    let now = self.idle_channels(deadline)?;
                    let mut left = idle.take().unwrap_or_default();
                    left.retain(|channel| now.contains(channel));
                    if !self.close_idle(&left, deadline)? {
                        return Err(TokenError::NoChannel);
                    }
                }
                result => break result?,
            }
        };
        self.selected = Some(selected.clone());
        Ok(selected)
    }

    /// Whether the card may have opened a channel whose number was lost.
    fn may_lose_channels(&self) -> bool {
        self.options.channel == ChannelPolicy::Open && !self.transport.resets_card()
    }

    /// Drops the selection, although the card may still have the channel open.
    pub(super) fn abandon(&mut self) {
        if let Some(Selected { channel, opened, .. }) = self.selected.take() {
            self.leave_open(channel, opened);
        }
    }

    /// As [`Applet::abandon`] after a transport error; a removed card has closed its channels.
    fn leave_after(&mut self, error: &TokenError, channel: Channel, opened: bool) {
        if !matches!(error, TokenError::Transport(TransportError::Gone(_))) {
            self.leave_open(channel, opened);
        }
    }

    fn leave_open(&mut self, channel: Channel, opened: bool) {
        if opened && !self.transport.resets_card() {
            self.left_open.push(channel);
        }
    }

    /// Closes channels left open, on a card that cannot be reset and would run out of channels.
    pub(super) fn close_left_open(&mut self, deadline: Instant) -> Result<(), TokenError> {
        while let Some(channel) = self.left_open.last().copied() {
            match self.exchange(&close_command(channel), deadline) {
                // Whatever the card or the modem answers, nothing more can be done.
                Ok(_) | Err(TokenError::Transport(TransportError::Refused(_))) => {}
                Err(error) => return Err(error),
            }
            self.left_open.pop();
            self.transport.channel_closed(channel.0);
        }
        Ok(())
    }

    /// Closes the channels of processes that were killed, if the applet is still selected there:
    /// the modem may have restarted, and have given the channel to someone else.
    fn close_orphaned(&mut self, deadline: Instant) -> Result<(), TokenError> {
        if !self.may_lose_channels() {
            return Ok(());
        }
        for number in self.transport.orphaned_channels() {
            let channel = Channel::new(number).filter(|channel| *channel != Channel::BASIC);
            let Some(channel) = channel else { continue };
            match self.query(channel, ins::GET_DATA, deadline) {
                Ok(answer) if answer.sw.is_error() => self.transport.channel_closed(number),
                Ok(_) => self.left_open.push(channel),
                Err(TokenError::Transport(TransportError::Refused(_))) => {}
                Err(error) => return Err(error),
            }
        }
        self.close_left_open(deadline)
    }

    /// Closes every channel, as far as possible.
    pub(crate) fn close(&mut self, deadline: Instant) {
        self.close_selected(deadline);
        // Also one whose last answer was lost.
        if !self.left_open.is_empty() && self.resynchronise(deadline).is_ok() {
            let _ = self.close_left_open(deadline); // as far as possible
        }
    }

    fn close_selected(&mut self, deadline: Instant) {
        if let Some(Selected { channel, opened: true, .. }) = self.selected.take() {
            // An error is not serious: a removed card has closed the channel.
            match self.exchange(&close_command(channel), deadline) {
                Ok(_) => self.transport.channel_closed(channel.0),
                Err(error) => self.leave_after(&error, channel, true),
            }
        }
    }

    /// Discards pending answers.
    fn resynchronise(&mut self, deadline: Instant) -> Result<(), TokenError> {
        if self.stale {
            self.reset_transport(deadline)?;
        }
        Ok(())
    }

    /// Resets the transport, and the card if it can.
    pub(super) fn reset_transport(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError> {
        let reset = self.transport.reset(deadline);
        let atr = self.forget_if_gone(reset)?;
        self.stale = false;
        Ok(atr)
    }

    /// Forgets the channels after the card was removed: channels of these numbers may belong to
    /// others when it is back.
    pub(super) fn forget_if_gone<T>(
        &mut self,
        result: Result<T, TransportError>,
    ) -> Result<T, TransportError> {
        if matches!(result, Err(TransportError::Gone(_))) {
            self.selected = None;
            self.left_open.clear();
        }
        result
    }

    fn open_and_select(&mut self, deadline: Instant) -> Result<Selected, TokenError> {
        let (channel, opened) = match self.options.channel {
            ChannelPolicy::Basic => (Channel::BASIC, false),
            ChannelPolicy::Fixed(channel) => (channel, false),
            ChannelPolicy::Open => match self.open_channel(deadline) {
                Err(error) if is_refusal(&error) && self.opens_by_aid(deadline)? => {
                    return self.open_by_aid(deadline);
                }
                result => result?,
            },
        };
        // The basic channel is open on every card: a server refuses it that has none left for us.
        let none_left = self.options.channel == ChannelPolicy::Open && channel == Channel::BASIC;
        let aids = self.aids();
        let mut last = StatusWord::NOT_FOUND;
        for aid in &aids {
            // Without Le: no file control information is needed, and modems forward it in this
            // form.
            let cla = channel.class(0);
            let select = Command { cla, ins: ins::SELECT, p1: 4, p2: 0, data: aid, le: None };
            let answer = self.exchange(&select, deadline);
            last = match answer {
                Ok(answer) => answer.sw,
                Err(error) => {
                    self.leave_after(&error, channel, opened);
                    return Err(error);
                }
            };
            if !last.is_error() {
                return Ok(Selected { aid: aid.clone(), channel, opened });
            }
            if matches!(last, StatusWord::NO_CHANNEL) || !is_about_the_applet(last) {
                break;
            }
        }
        if opened {
            self.selected = Some(Selected { aid: Vec::new(), channel, opened });
            self.close_selected(deadline);
        }
        if last == StatusWord::NO_CHANNEL
            || (last == StatusWord::CHANNEL_NOT_SUPPORTED && none_left)
        {
            return Err(TokenError::NoChannel);
        }
        if !is_about_the_applet(last) {
            return Err(TokenError::status("SELECT", last));
        }
        Err(TokenError::NoApplet { tried: aids.len(), last })
    }

    /// The identifiers to try.
    fn aids(&self) -> Vec<Vec<u8>> {
        match &self.options.aid {
            Some(aid) => vec![aid.clone()],
            None => AIDS.iter().map(|aid| aid.to_vec()).collect(),
        }
    }

    fn opens_by_aid(&mut self, deadline: Instant) -> Result<bool, TokenError> {
        let answer = self.transport.opens_by_aid(deadline);
        self.noted(answer)
    }

    /// Opens a channel together with the applet. A modem does not say whether there is no such
    /// applet or no channel left.
    fn open_by_aid(&mut self, deadline: Instant) -> Result<Selected, TokenError> {
        self.close_orphaned(deadline)?; // of programs that did the same
        let mut refused = None;
        for aid in self.aids() {
            let answer = self.transport.open_by_aid(&aid, deadline);
            match self.noted(answer) {
                Ok(number) => return self.opened_by_aid(number, aid, deadline),
                Err(error @ TokenError::Transport(TransportError::Refused(_))) => {
                    refused = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(refused.unwrap_or(TokenError::NoChannel))
    }

    fn opened_by_aid(
        &mut self,
        number: u8,
        aid: Vec<u8>,
        deadline: Instant,
    ) -> Result<Selected, TokenError> {
        let Some(channel) = Channel::new(number).filter(|_| number > 0) else {
            // The number of no channel, in whose class bytes it would be.
            self.exchange(&close_command(Channel(number)), deadline)?;
            return Err(TokenError::answer("AT+CCHO", "is not the number of a channel"));
        };
        self.transport.channel_opened(number);
        Ok(Selected { aid, channel, opened: true })
    }

    fn open_channel(&mut self, deadline: Instant) -> Result<(Channel, bool), TokenError> {
        let open =
            Command { cla: 0, ins: ins::MANAGE_CHANNEL, p1: 0, p2: 0, data: &[], le: Some(1) };
        let response = self.whole_answer(&open, Channel::BASIC, deadline)?;
        match (response.sw, &response.data[..]) {
            // The basic channel needs no opening (ISO 7816-4 section 11.1.2): such an answer is
            // damaged.
            (StatusWord::OK, [number, ..]) => match Channel::new(*number).filter(|_| *number > 0) {
                Some(channel) => {
                    if !self.transport.resets_card() {
                        self.transport.channel_opened(channel.0);
                    }
                    Ok((channel, true))
                }
                None => {
                    let what = "contains no channel number";
                    Err(TokenError::answer("MANAGE CHANNEL", what))
                }
            },
            // What was done is unknown: the caller must recover.
            (sw @ StatusWord::UNKNOWN, _) => Err(TokenError::status("MANAGE CHANNEL", sw)),
            // The basic channel is the modem's own.
            (StatusWord::NO_CHANNEL, _) if !self.transport.resets_card() => {
                Err(TokenError::NoChannel)
            }
            (sw, _) if sw.is_error() && !self.transport.resets_card() => {
                Err(TokenError::status("MANAGE CHANNEL", sw))
            }
            // A card without the command has only the basic channel, and it can be used too if all
            // others are in use, perhaps by killed programs.
            (sw, _) if sw.is_error() => Ok((Channel::BASIC, false)),
            _ => Err(TokenError::answer("MANAGE CHANNEL", "contains no channel number")),
        }
    }
}

/// Whether MANAGE CHANNEL was refused, by the modem or by the card, for another reason than that
/// all channels are in use.
fn is_refusal(error: &TokenError) -> bool {
    match error {
        TokenError::Transport(TransportError::Refused(_)) => true,
        TokenError::Status { sw, .. } => *sw != StatusWord::UNKNOWN,
        _ => false,
    }
}

/// Whether a refusal of SELECT may mean that there is no such applet: not where the memory fails or
/// the channel is not open.
fn is_about_the_applet(sw: StatusWord) -> bool {
    !matches!(sw, StatusWord::MEMORY_FAILURE | StatusWord::CHANNEL_NOT_SUPPORTED)
}

pub(super) fn close_command(channel: Channel) -> Command<'static> {
    Command { cla: 0, ins: ins::MANAGE_CHANNEL, p1: 0x80, p2: channel.0, data: &[], le: None }
}

#[cfg(test)]
mod tests {
    use super::super::PROPRIETARY;
    use super::*;

    #[test]
    fn class_bytes_of_channels() {
        let classes = [(0, 0x80), (1, 0x81), (3, 0x83), (4, 0xc0), (19, 0xcf)];
        for (number, class) in classes {
            assert_eq!(Channel::new(number).unwrap().class(PROPRIETARY), class);
        }
        assert_eq!(Channel::new(20), None);
    }
}
