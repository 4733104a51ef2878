// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Logical channels: opening one and selecting the applet there, giving it back, and what becomes of
//! it when an answer is lost on the way.

use std::ops::RangeInclusive;
use std::thread;
use std::time::{Duration, Instant};

use warifu_card::apdu::{Command, StatusWord};
use warifu_card::{AIDS, ins};

use super::{Applet, Selected};
use crate::error::TokenError;
use crate::transport::TransportError;

/// How long a card is asked for a channel when all are taken, and how long apart.
const CHANNEL_PATIENCE: Duration = Duration::from_secs(1);
const CHANNEL_WAIT: Duration = Duration::from_millis(20);

/// The numbers of channels beside the basic one (ISO 7816-4 section 5.4.1).
pub(super) const LOGICAL_CHANNELS: RangeInclusive<u8> = 1..=19;

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
    /// What is selected. Opens and selects if need be.
    pub(crate) fn select(&mut self, deadline: Instant) -> Result<Selected, TokenError> {
        if let Some(selected) = &self.selected {
            return Ok(selected.clone());
        }
        self.resynchronise(deadline)?;
        let connected = self.transport.connect(deadline);
        self.noting_loss(connected)?;
        self.close_left_open(deadline)?;
        let give_up = deadline.min(Instant::now() + CHANNEL_PATIENCE);
        let mut was_reset = false;
        let mut idle = None;
        let selected = loop {
            match self.open_and_select(deadline) {
                // Another program may have reset the card since; then once more.
                Err(TokenError::Transport(TransportError::CardReset)) if !was_reset => {
                    was_reset = true;
                }
                // Short-lived programs give their channels back soon.
                Err(TokenError::NoChannel) if Instant::now() < give_up => {
                    if idle.is_none() && self.may_lose_channels() {
                        idle = Some(self.idle_channels(deadline)?);
                    }
                    thread::sleep(CHANNEL_WAIT);
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

    /// Whether a channel that the card has opened for us may stay open without our knowing.
    fn may_lose_channels(&self) -> bool {
        self.options.channel == ChannelPolicy::Open && !self.transport.resets_card()
    }

    /// Leaves the channel without knowing that the card has closed it.
    pub(super) fn abandon(&mut self) {
        if let Some(Selected { channel, opened, .. }) = self.selected.take() {
            self.leave_open(channel, opened);
        }
    }

    /// As [`Applet::abandon`], after an error of the way; but what is gone has no channel of ours.
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

    /// A card that no reset reaches has few channels, and would run out of them.
    pub(super) fn close_left_open(&mut self, deadline: Instant) -> Result<(), TokenError> {
        while let Some(channel) = self.left_open.last().copied() {
            match self.exchange(&close_command(channel), deadline) {
                // Whatever the card answers, or the modem, there is no more to be done about this
                // one.
                Ok(_) | Err(TokenError::Transport(TransportError::Refused(_))) => {}
                Err(error) => return Err(error),
            }
            self.left_open.pop();
        }
        Ok(())
    }

    /// Gives every channel back to the card, as far as that can be done.
    pub(crate) fn close(&mut self, deadline: Instant) {
        self.close_selected(deadline);
        // One whose last answer was lost as well: nobody else would.
        if !self.left_open.is_empty() && self.resynchronise(deadline).is_ok() {
            let _ = self.close_left_open(deadline); // as far as that can be done
        }
    }

    fn close_selected(&mut self, deadline: Instant) {
        if let Some(Selected { channel, opened: true, .. }) = self.selected.take() {
            // Nothing depends on it just now: a card that is gone has closed it.
            if let Err(error) = self.exchange(&close_command(channel), deadline) {
                self.leave_after(&error, channel, true);
            }
        }
    }

    /// Has no answer under way any more.
    fn resynchronise(&mut self, deadline: Instant) -> Result<(), TokenError> {
        if self.stale {
            self.reset_way(deadline)?;
        }
        Ok(())
    }

    /// Resets the way, and the card where it can.
    pub(super) fn reset_way(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError> {
        let reset = self.transport.reset(deadline);
        let atr = self.noting_loss(reset)?;
        self.stale = false;
        Ok(atr)
    }

    /// A modem that was unplugged has taken its card's channels along, and may have others of these
    /// numbers open when it is back.
    pub(super) fn noting_loss<T>(
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
                    self.leave_after(&error, channel, opened);
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
            self.close_selected(deadline);
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

pub(super) fn close_command(channel: Channel) -> Command<'static> {
    Command { cla: 0, ins: ins::MANAGE_CHANNEL, p1: 0x80, p2: channel.0, data: &[], le: None }
}

#[cfg(test)]
mod tests {
    use super::super::PROPRIETARY;
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
