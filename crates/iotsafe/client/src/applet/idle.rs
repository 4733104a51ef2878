// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open channels that nobody uses.
//!
//! Only the answer to MANAGE CHANNEL tells which channel the card has opened (ETSI TS 102 221
//! section 11.1.17: the card chooses). If it is lost and nothing resets the card, as behind a
//! modem, the channel stays open until the modem restarts, and no program knows of it. So when the
//! card has no channel left, those on which nothing is selected are closed. Channels of the modem
//! and of other programs have an application selected.

use std::time::Instant;

use warifu_card::apdu::{Command, Response, SHORT_ANSWER_MAX_BYTES, StatusWord};
use warifu_card::ins;

use super::channel::{Channel, LOGICAL_CHANNELS, close_command};
use super::{Applet, PROPRIETARY};
use crate::error::TokenError;
use crate::object::{fields, value};
use crate::transport::TransportError;

/// STATUS (ETSI TS 102 221 section 11.1.2), of a proprietary class; with P1 and P2 00 it gives the
/// file control parameters of the current directory and changes nothing.
const STATUS: u8 = 0xf2;
/// Tags of file control parameters, and of the file's identifier within (section 11.1.1.3).
const PARAMETERS: u8 = 0x62;
const FILE_ID: u8 = 0x83;
/// The identifier of the MF, the current directory of a new channel (section 8.7).
const MF: [u8; 2] = [0x3f, 0x00];

impl Applet {
    /// The open channels on which nothing is selected. Another program may be between opening its
    /// channel and SELECT, so only channels found twice are unused.
    pub(super) fn idle_channels(&mut self, deadline: Instant) -> Result<Vec<Channel>, TokenError> {
        let has_files = match self.query(Channel::BASIC, STATUS, deadline) {
            Ok(status) => status.sw == StatusWord::OK,
            // The modem does not forward commands on its own channel: no information on the others.
            Err(TokenError::Transport(TransportError::Refused(_))) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut idle = Vec::new();
        for channel in LOGICAL_CHANNELS.filter_map(Channel::new) {
            match self.is_idle(channel, has_files, deadline) {
                Ok(true) => idle.push(channel),
                Ok(false) => {}
                // Some modems forward no class of a channel above 3.
                Err(TokenError::Transport(TransportError::Refused(_))) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(idle)
    }

    /// Closes channels; returns whether there were any.
    pub(super) fn close_idle(
        &mut self,
        channels: &[Channel],
        deadline: Instant,
    ) -> Result<bool, TokenError> {
        for channel in channels {
            self.exchange(&close_command(*channel), deadline)?;
            self.transport.channel_closed(channel.0);
        }
        Ok(!channels.is_empty())
    }

    fn is_idle(
        &mut self,
        channel: Channel,
        has_files: bool,
        deadline: Instant,
    ) -> Result<bool, TokenError> {
        let status = self.query(channel, STATUS, deadline)?;
        match status.sw {
            // Not open, or a class that a card with few channels does not know.
            StatusWord::CHANNEL_NOT_SUPPORTED | StatusWord::CLASS => Ok(false),
            StatusWord::OK => Ok(is_at_mf(&status.data)),
            // An application without this command, on a card that has it.
            _ if has_files => Ok(false),
            // A card without this command: check at least that no IoT SAFE applet is selected.
            _ => Ok(self.query(channel, ins::GET_DATA, deadline)?.sw.is_error()),
        }
    }

    pub(super) fn query(
        &mut self,
        channel: Channel,
        ins: u8,
        deadline: Instant,
    ) -> Result<Response, TokenError> {
        let (cla, le) = (channel.class(PROPRIETARY), Some(SHORT_ANSWER_MAX_BYTES));
        let command = Command { cla, ins, p1: 0, p2: 0, data: &[], le };
        self.whole_answer(&command, channel, deadline)
    }
}

fn is_at_mf(parameters: &[u8]) -> bool {
    let file_id = |data| {
        let outer = fields(data)?;
        let inner = fields(value(&outer, PARAMETERS)?)?;
        value(&inner, FILE_ID).map(|id| id == MF)
    };
    file_id(parameters).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mf_application_and_malformed_parameters() {
        let mf = [0x62, 0x0a, 0x82, 2, 0x78, 0x21, 0x83, 2, 0x3f, 0, 0x8a, 0];
        assert!(is_at_mf(&mf));
        let usim = [0x62, 0x0b, 0x82, 2, 0x78, 0x21, 0x84, 5, 0xa0, 0, 0, 0, 0x87];
        let folder = [0x62, 0x08, 0x82, 2, 0x78, 0x21, 0x83, 2, 0x5f, 0xc0];
        for other in [&usim[..], &folder, &[], &mf[..5], &[0x83, 2, 0x3f, 0]] {
            assert!(!is_at_mf(other), "{other:02x?}");
        }
    }
}
