// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Logical channels, what is selected on them, chains of commands, sessions.

use zeroize::Zeroizing;

use super::{AIDS, Answer, Card, Handled, Request};
use crate::apdu::{Command, StatusWord};
use crate::crypto::Hash;
use crate::quirks::Reopen;
use crate::tlv;

/// Basic channel 0 and logical channels 1 to 3: those of two class bits.
pub(super) const CHANNELS: usize = 4;
/// The most bytes that a chain of commands may carry together.
const CHAIN_MAX_BYTES: usize = 0x8000;
/// The most sessions of a channel; Thales' client numbers them 0 to 5.
pub(super) const SESSIONS_MAX: usize = 6;
/// The highest number of a session.
const SESSION_NUMBER_MAX: u8 = 15;
/// The most bytes that the updates of a session may carry together.
const SESSION_MAX_BYTES: usize = 0x1_0000;
/// P1 of a session's last update.
const LAST: u8 = 0x80;

/// A class byte taken apart (ISO 7816-4 section 5.4.1; proprietary classes 80 to 9F are built
/// the same way, GlobalPlatform Card Specification 2.3 section 11.1.4).
#[derive(Clone, Copy)]
pub(super) struct Class {
    pub(super) interindustry: bool,
    pub(super) chained: bool,
    pub(super) channel: usize,
}

impl Class {
    pub(super) fn parse(cla: u8) -> Result<Class, StatusWord> {
        if !matches!(cla, 0x00..=0x1f | 0x80..=0x9f) {
            return Err(StatusWord::CLASS);
        }
        if cla & 0x0c != 0 {
            return Err(StatusWord::SECURE_MESSAGING_NOT_SUPPORTED);
        }
        Ok(Class {
            interindustry: cla & 0x80 == 0,
            chained: cla & 0x10 != 0,
            channel: usize::from(cla & 0x03),
        })
    }
}

/// A logical channel.
#[derive(Default)]
pub(super) struct Channel {
    pub(super) open: bool,
    /// Which of [`AIDS`] was selected.
    pub(super) selected: Option<usize>,
    pub(super) chain: Option<Chain>,
    /// What waits for GET RESPONSE.
    pub(super) pending: Zeroizing<Vec<u8>>,
    pub(super) sessions: Vec<Session>,
}

impl Channel {
    /// All of them as a reset leaves them: only the basic one is open.
    pub(super) fn after_reset() -> [Channel; CHANNELS] {
        let mut channels: [Channel; CHANNELS] = Default::default();
        channels[0].open = true;
        channels
    }
}

/// The commands of a chain so far.
pub(super) struct Chain {
    header: [u8; 3],
    pub(super) data: Zeroizing<Vec<u8>>,
}

impl Chain {
    /// Whether the command has the header of those before it (ISO 7816-4 section 5.3.3).
    pub(super) fn continues_with(&self, command: &Command<'_>) -> bool {
        self.header == [command.ins, command.p1, command.p2]
    }

    /// The chain with a command's data behind.
    pub(super) fn joined(chain: Option<Chain>, command: &Command<'_>) -> Result<Chain, StatusWord> {
        let mut data = chain.map(|chain| chain.data).unwrap_or_default();
        if data.len() + command.data.len() > CHAIN_MAX_BYTES {
            return Err(StatusWord::MEMORY);
        }
        data.extend_from_slice(command.data);
        Ok(Chain { header: [command.ins, command.p1, command.p2], data })
    }
}

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    ComputeSignature,
    VerifySignature,
    PutPublicKey,
}

/// How the text of a signature comes in (tag A1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The text itself.
    FullText,
    /// Its last block, and the state of the hash before that.
    LastBlock,
    /// Its hash.
    PadAndSign,
}

impl Mode {
    pub(super) fn from_byte(byte: u8) -> Option<Mode> {
        match byte {
            1 => Some(Mode::FullText),
            2 => Some(Mode::LastBlock),
            3 => Some(Mode::PadAndSign),
            _ => None,
        }
    }
}

/// A session of a channel.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) job: Job,
    pub(super) number: u8,
    /// The id of the key that it works on.
    pub(super) key: Vec<u8>,
    /// Of signatures.
    pub(super) mode: Mode,
    pub(super) hash: Hash,
    /// The updates so far.
    pub(super) buffer: Zeroizing<Vec<u8>>,
}

impl Card {
    /// SELECT by AID: P1 04, P2 00 (with file control information if Le asks) or 0C (none).
    pub(super) fn select(&mut self, request: &Request<'_>) -> Handled {
        if request.p1 != 0x04 || !matches!(request.p2, 0x00 | 0x0c) {
            return Err(StatusWord::INCORRECT_P1_P2);
        }
        let aid = AIDS.iter().position(|aid| *aid == request.data).ok_or(StatusWord::NOT_FOUND)?;
        let channel = &mut self.channels[request.channel];
        channel.selected = Some(aid);
        channel.sessions.clear();
        if request.p2 == 0x0c || request.le.is_none() {
            return Ok(Answer::none());
        }
        // ISO 7816-4 section 7.4.3: 6F, within it 84 with the name.
        Ok(Answer::of(tlv::field(0x6f, &tlv::field(0x84, request.data))))
    }

    /// MANAGE CHANNEL (ISO 7816-4 section 11.1.2): `70 00 00` opens any, `70 00 0n` one of its
    /// number, `70 80 0n` closes one. On a new channel nothing is selected.
    pub(super) fn manage_channel(&mut self, request: &Request<'_>) -> Handled {
        if !request.data.is_empty() {
            return Err(StatusWord::WRONG_LENGTH);
        }
        let number = usize::from(request.p2);
        match (request.p1, number) {
            (0x00, 0) => {
                let free = self.channels.iter().position(|channel| !channel.open);
                let free = free.ok_or(StatusWord::NO_CHANNEL)?;
                self.channels[free] = Channel { open: true, ..Channel::default() };
                Ok(Answer::of(vec![free as u8]))
            }
            (0x00, 1..CHANNELS) => {
                if self.channels[number].open {
                    return Err(StatusWord::NO_CHANNEL);
                }
                self.channels[number] = Channel { open: true, ..Channel::default() };
                Ok(Answer::none())
            }
            (0x80, 0) if request.channel != 0 => {
                self.channels[request.channel] = Channel::default();
                Ok(Answer::none())
            }
            (0x80, 1..CHANNELS) => {
                if !self.channels[number].open {
                    return Err(StatusWord::CHANNEL_NOT_SUPPORTED);
                }
                self.channels[number] = Channel::default();
                Ok(Answer::none())
            }
            _ => Err(StatusWord::INCORRECT_P1_P2),
        }
    }

    /// What P1 of a session's INIT wants: true to open. Closing is done here.
    pub(super) fn opens_session(
        &mut self,
        request: &Request<'_>,
        job: Job,
    ) -> Result<bool, StatusWord> {
        if request.p2 > SESSION_NUMBER_MAX {
            return Err(StatusWord::INCORRECT_P1_P2);
        }
        match request.p1 {
            0x00 => Ok(true),
            0x01 if request.data.is_empty() => {
                let at = self.session(request, job)?;
                self.channels[request.channel].sessions.remove(at);
                Ok(false)
            }
            0x01 => Err(StatusWord::INCORRECT_DATA),
            _ => Err(StatusWord::INCORRECT_P1_P2),
        }
    }

    /// Opens a session of the number in P2.
    pub(super) fn open_session(&mut self, request: &Request<'_>, new: Session) -> Handled {
        let open = self.session(request, new.job).ok();
        let sessions = &mut self.channels[request.channel].sessions;
        match open {
            Some(_) if self.settings.quirks.reopen == Reopen::Refuse => {
                return Err(StatusWord::CONDITIONS);
            }
            Some(at) => sessions[at] = new,
            None if sessions.len() >= SESSIONS_MAX => return Err(StatusWord::CAPACITY),
            None => sessions.push(new),
        }
        Ok(Answer::none())
    }

    /// Takes an update: the session and all its data if this was the last, else None. After the
    /// last one the session is open for the next text.
    pub(super) fn update_session(
        &mut self,
        request: &Request<'_>,
        job: Job,
    ) -> Result<Option<Session>, StatusWord> {
        if !matches!(request.p1, 0 | LAST) || request.p2 > SESSION_NUMBER_MAX {
            return Err(StatusWord::INCORRECT_P1_P2);
        }
        let at = self.session(request, job)?;
        let session = &mut self.channels[request.channel].sessions[at];
        if session.buffer.len() + request.data.len() > SESSION_MAX_BYTES {
            session.buffer = Zeroizing::default();
            return Err(StatusWord::MEMORY);
        }
        session.buffer.extend_from_slice(request.data);
        if request.p1 != LAST {
            return Ok(None);
        }
        let buffer = std::mem::take(&mut session.buffer);
        Ok(Some(Session { buffer, ..session.clone() }))
    }

    fn session(&self, request: &Request<'_>, job: Job) -> Result<usize, StatusWord> {
        let sessions = &self.channels[request.channel].sessions;
        let named = |session: &Session| session.job == job && session.number == request.p2;
        sessions.iter().position(named).ok_or(StatusWord::CONDITIONS)
    }
}
