// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `+CCHO`, `+CGLA` and `+CCHC` (3GPP TS 27.007 sections 8.45, 8.43 and 8.46): the modem opens a
//! logical channel, selects an application on it, and gives it a number of its own, the session.

use warifu_card::apdu::StatusWord;
use warifu_card::ins;

use super::command::apdu_parameters;
use super::outcome::{CmeError, End};
use super::{Modem, Sim};

/// A channel that the modem has opened for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session {
    number: u8,
    channel: u8,
}

/// The most bytes of an application's identifier (ETSI TS 101 220 section 4).
const AID_MAX_BYTES: usize = 16;

impl Modem {
    /// `"<dfname>"`: opens a channel with this application selected.
    pub(super) fn open_session(
        &mut self,
        parameters: &[u8],
        sim: &mut dyn FnMut(&[u8]) -> Sim,
    ) -> End {
        let text = parameters.trim_ascii();
        let quoted = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
        let aid = match hex::decode(quoted.unwrap_or(text)) {
            Ok(aid) if (1..=AID_MAX_BYTES).contains(&aid.len()) => aid,
            _ => return End::Cme(CmeError::IncorrectParameters),
        };
        let opened = match answer(sim, &[0x00, ins::MANAGE_CHANNEL, 0, 0, 1]) {
            Ok((data, StatusWord::OK)) => data,
            Ok(_) => return End::Cme(CmeError::MemoryFull),
            Err(end) => return end,
        };
        // Class bytes of this form have channels 1 to 3, and the modem no others.
        let &[channel @ 1..=3] = &opened[..] else { return End::Cme(CmeError::SimFailure) };
        let mut select = vec![channel, ins::SELECT, 4, 0, aid.len() as u8];
        select.extend(&aid);
        match answer(sim, &select) {
            Ok((_, sw)) if !sw.is_error() => {}
            Ok(_) => {
                let _ = answer(sim, &close(channel)); // as far as possible
                return End::Cme(CmeError::NotFound);
            }
            Err(end) => return end,
        }
        let Some(number) = (1..=u8::MAX).find(|&number| self.session(number).is_none()) else {
            return End::Cme(CmeError::MemoryFull);
        };
        self.sessions.push(Session { number, channel });
        self.say(&format!("+CCHO: {number}"));
        End::Ok
    }

    /// `<sessionid>`: closes the channel.
    pub(super) fn close_session(
        &mut self,
        parameters: &[u8],
        sim: &mut dyn FnMut(&[u8]) -> Sim,
    ) -> End {
        let found = number(parameters).and_then(|number| self.session(number));
        let Some(session) = found else { return End::Cme(CmeError::InvalidIndex) };
        self.sessions.retain(|one| *one != session);
        match answer(sim, &close(session.channel)) {
            Ok(_) => {
                self.say("+CCHC");
                End::Ok
            }
            Err(end) => end,
        }
    }

    /// `<sessionid>,<length>,"<command>"`: the modem puts the channel into the class byte.
    pub(super) fn session_command(
        &mut self,
        parameters: &[u8],
        sim: &mut dyn FnMut(&[u8]) -> Sim,
    ) -> End {
        let Some(comma) = parameters.iter().position(|&byte| byte == b',') else {
            return End::Cme(CmeError::IncorrectParameters);
        };
        let (session, rest) = (&parameters[..comma], &parameters[comma + 1..]);
        let found = number(session).and_then(|number| self.session(number));
        let Some(session) = found else { return End::Cme(CmeError::InvalidIndex) };
        let mut apdu = match apdu_parameters(rest) {
            Ok(apdu) => apdu,
            Err(error) => return End::Cme(error),
        };
        apdu[0] = match apdu[0] {
            // A class of a channel above 3 has four bits for it (ISO 7816-4 section 5.4.1).
            class if class & 0x40 != 0 => class & !0x4f | session.channel,
            class => class & !0x03 | session.channel,
        };
        self.pass_on("+CGLA", &apdu, sim)
    }

    fn session(&self, number: u8) -> Option<Session> {
        self.sessions.iter().copied().find(|session| session.number == number)
    }
}

fn number(text: &[u8]) -> Option<u8> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

fn close(channel: u8) -> [u8; 4] {
    [0x00, ins::MANAGE_CHANNEL, 0x80, channel]
}

/// The data and the status word of the card's answer, or how the command ends without one.
fn answer(sim: &mut dyn FnMut(&[u8]) -> Sim, apdu: &[u8]) -> Result<(Vec<u8>, StatusWord), End> {
    match sim(apdu) {
        Sim::Answer(mut data) if data.len() >= 2 => {
            let sw = data.split_off(data.len() - 2);
            Ok((data, StatusWord(u16::from_be_bytes([sw[0], sw[1]]))))
        }
        Sim::Answer(_) | Sim::Failure => Err(End::Cme(CmeError::SimFailure)),
        Sim::Silent => Err(End::Silent),
        Sim::Absent => Err(End::Cme(CmeError::NotInserted)),
    }
}
