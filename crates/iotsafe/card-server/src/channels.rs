// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Separate logical channels for several clients of one card.
//!
//! Every client has its own channel numbers, including the basic channel 0, which are mapped to
//! channels of the card. **A single client uses the card's own numbers**, so it sees the card as it
//! is; only a number that another client uses already is mapped to a different one. A channel
//! belongs to a client from the command that opens it until the client closes it, resets or
//! disconnects.

use std::collections::BTreeMap;

use warifu_card::apdu::StatusWord;
use warifu_card::ins;

/// Basic channel 0 and logical channels 1 to 3: those of the class byte's two low bits (ISO 7816-4
/// section 5.4.1).
pub const CHANNELS: usize = 4;

/// A connected client.
pub type ClientId = u64;

/// The card's channel for each channel number of a client.
type View = [Option<u8>; CHANNELS];

/// The channels of all clients.
#[derive(Debug, Default)]
pub struct Channels {
    views: BTreeMap<ClientId, View>,
    /// The basic channel was used since the last reset; it cannot be closed.
    basic_used: bool,
}

/// How to execute a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// Answered by the server: the card has no free channel.
    Answer(StatusWord),
    /// Sent to the card.
    Send {
        /// A command to send first, which opens a channel. If it is refused, that is the answer.
        before: Option<[u8; 4]>,
        /// The command with the card's channel numbers.
        apdu: Vec<u8>,
        /// The effect of a success, for [`Channels::settle`].
        then: Then,
    },
}

/// The effect of a success on the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// None.
    Nothing,
    /// The client's number is mapped to the card's.
    Opens {
        /// The number of the client.
        number: usize,
        /// The number of the card.
        card: u8,
    },
    /// The client's number is not mapped any more.
    Closes {
        /// The number of the client.
        number: usize,
    },
}

impl Channels {
    /// Plans how to carry out a client's command.
    pub fn plan(&mut self, client: ClientId, apdu: &[u8]) -> Plan {
        let [cla @ (0x00..=0x1f | 0x80..=0x9f), ins, p1, p2, ..] = *apdu else {
            // Not a class with a channel, or too short: the card refuses it.
            return Plan::Send { before: None, apdu: apdu.to_vec(), then: Then::Nothing };
        };
        let number = usize::from(cla & 0x03);
        let manages = ins == ins::MANAGE_CHANNEL && cla < 0x80;
        if manages && number == 0 && apdu.len() > 4 && self.card_of(client, 0).is_none() {
            // Its answer is complete, so that nothing remains on the basic channel.
            return self.manage(client, 0, p1, p2, apdu);
        }
        let (before, card) = match self.carrier(client, number, ins) {
            Ok(found) => found,
            Err(sw) => return Plan::Answer(sw),
        };
        if manages {
            return match self.manage(client, card, p1, p2, apdu) {
                Plan::Send { apdu, then, .. } => Plan::Send { before, apdu, then },
                answer @ Plan::Answer(_) => answer,
            };
        }
        let opens = number != 0 && self.card_of(client, number).is_none() && ins == ins::SELECT;
        let then = if opens { Then::Opens { number, card } } else { Then::Nothing };
        Plan::Send { before, apdu: on_channel(apdu, card), then }
    }

    /// Whether a command would be refused for the channels that other clients hold.
    #[must_use]
    pub fn is_full(&self, client: ClientId, apdu: &[u8]) -> bool {
        let others =
            self.views.iter().any(|(&id, view)| id != client && view.iter().any(Option::is_some));
        if !others || self.free(1).is_some() {
            return false;
        }
        let mut tried = Channels { views: self.views.clone(), basic_used: self.basic_used };
        matches!(tried.plan(client, apdu), Plan::Answer(_))
    }

    /// Updates the channels after the answer to a planned command.
    pub fn settle(&mut self, client: ClientId, then: Then, sw: StatusWord) {
        if sw.is_error() {
            return;
        }
        let view = self.views.entry(client).or_default();
        match then {
            Then::Nothing => {}
            Then::Opens { number, card } => view[number] = Some(card),
            Then::Closes { number } => view[number] = None,
        }
    }

    /// The channel for a client's basic one could not be opened.
    pub fn settle_refused(&mut self, client: ClientId) {
        if let Some(view) = self.views.get_mut(&client) {
            view[0] = None;
        }
    }

    /// Removes the channels of a client that has reset or disconnected; returns the commands that
    /// close them.
    pub fn release(&mut self, client: ClientId) -> Vec<[u8; 4]> {
        let view = self.views.remove(&client).unwrap_or_default();
        let logical = view.into_iter().flatten().filter(|&card| card != 0);
        logical.map(|card| [0x00, ins::MANAGE_CHANNEL, 0x80, card]).collect()
    }

    /// Whether no client uses a channel, so that the card can be reset.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.views.values().flatten().all(Option::is_none)
    }

    /// The card was reset: no channel is open.
    pub fn forget(&mut self) {
        *self = Channels::default();
    }

    /// The card's channel for a client's number, and the command that opens it if it is new.
    fn carrier(
        &mut self,
        client: ClientId,
        number: usize,
        ins: u8,
    ) -> Result<(Option<[u8; 4]>, u8), StatusWord> {
        if let Some(card) = self.card_of(client, number) {
            return Ok((None, card));
        }
        if number != 0 {
            // Not open: the card refuses it, or SELECT opens it on a card with that quirk.
            return Ok((None, self.free(number).ok_or(StatusWord::CHANNEL_NOT_SUPPORTED)?));
        }
        // SELECT removes what another client has left on the basic channel.
        let basic_is_free = !self.is_held(0) && (!self.basic_used || ins == ins::SELECT);
        let (before, card) = if basic_is_free {
            self.basic_used = true;
            (None, 0)
        } else {
            let card = self.free(1).ok_or(StatusWord::CHANNEL_NOT_SUPPORTED)?;
            (Some([0x00, ins::MANAGE_CHANNEL, 0x00, card]), card)
        };
        self.views.entry(client).or_default()[0] = Some(card);
        Ok((before, card))
    }

    /// MANAGE CHANNEL on the card's channel `card`.
    fn manage(&mut self, client: ClientId, card: u8, p1: u8, p2: u8, apdu: &[u8]) -> Plan {
        let number = usize::from(p2);
        let carried = |p2: u8, then| {
            let mut apdu = on_channel(apdu, card);
            apdu[3] = p2;
            Plan::Send { before: None, apdu, then }
        };
        match (p1, number) {
            (0x00, 0) => {
                // The card opens the lowest channel that is not open.
                let Some(opened) = self.free(1) else {
                    return Plan::Answer(StatusWord::NO_CHANNEL);
                };
                if self.card_of(client, usize::from(opened)).is_some() {
                    return Plan::Answer(StatusWord::NO_CHANNEL);
                }
                carried(0, Then::Opens { number: usize::from(opened), card: opened })
            }
            (0x00, 1..CHANNELS) => match (self.card_of(client, number), self.free(number)) {
                (None, Some(opened)) => carried(opened, Then::Opens { number, card: opened }),
                _ => Plan::Answer(StatusWord::NO_CHANNEL),
            },
            (0x80, 0) => {
                let own = usize::from(apdu[0] & 0x03);
                carried(0, if own == 0 { Then::Nothing } else { Then::Closes { number: own } })
            }
            (0x80, 1..CHANNELS) => match self.card_of(client, number) {
                Some(closed) => carried(closed, Then::Closes { number }),
                None => Plan::Answer(StatusWord::CHANNEL_NOT_SUPPORTED),
            },
            _ => carried(p2, Then::Nothing),
        }
    }

    fn card_of(&self, client: ClientId, number: usize) -> Option<u8> {
        self.views.get(&client).and_then(|view| view[number])
    }

    fn is_held(&self, card: u8) -> bool {
        self.views.values().flatten().any(|&held| held == Some(card))
    }

    /// The card's logical channel `wanted` if it is free, or else the lowest free one.
    fn free(&self, wanted: usize) -> Option<u8> {
        let wanted = (wanted as u8).max(1);
        std::iter::once(wanted).chain(1..CHANNELS as u8).find(|&card| !self.is_held(card))
    }
}

/// The command with another channel in its class byte.
fn on_channel(apdu: &[u8], card: u8) -> Vec<u8> {
    let mut apdu = apdu.to_vec();
    apdu[0] = apdu[0] & !0x03 | card;
    apdu
}

#[cfg(test)]
mod tests {
    use super::*;

    const SELECT: [u8; 5] = [0x00, 0xa4, 0x04, 0x00, 0x00];
    const OPEN: [u8; 5] = [0x00, 0x70, 0x00, 0x00, 0x01];

    /// Plays a card that grants everything; returns the command as the card received it.
    fn granted(channels: &mut Channels, client: ClientId, apdu: &[u8]) -> Vec<u8> {
        match channels.plan(client, apdu) {
            Plan::Send { apdu, then, .. } => {
                channels.settle(client, then, StatusWord::OK);
                apdu
            }
            Plan::Answer(sw) => panic!("answered {sw}"),
        }
    }

    #[test]
    fn single_client_keeps_channel_numbers() {
        let mut channels = Channels::default();
        for apdu in [
            &SELECT[..],
            &OPEN,
            &[0x01, 0xa4, 0x04, 0x00, 0x00],
            &[0x81, 0x84, 0x00, 0x00, 0x08],
            &[0x00, 0x70, 0x00, 0x03],
            &[0x13, 0x2b, 0x00, 0x00],
            &[0x00, 0x70, 0x80, 0x01],
            &[0x02, 0xb0, 0x00, 0x00],
            &[0xa0, 0xa4, 0x00, 0x00],
            &[0xff],
            &[],
        ] {
            assert_eq!(granted(&mut channels, 1, apdu), apdu);
        }
    }

    #[test]
    fn second_client_gets_another_basic_channel() {
        let mut channels = Channels::default();
        assert_eq!(granted(&mut channels, 1, &SELECT), SELECT);
        let plan = channels.plan(2, &[0x80, 0x84, 0x00, 0x00, 0x08]);
        let before = Some([0x00, 0x70, 0x00, 0x01]);
        let apdu = vec![0x81, 0x84, 0x00, 0x00, 0x08];
        assert_eq!(plan, Plan::Send { before, apdu, then: Then::Nothing });
        // Opening a channel needs none for the basic one, and the first client keeps its number.
        assert_eq!(granted(&mut channels, 3, &OPEN), OPEN);
        assert_eq!(granted(&mut channels, 3, &[0x82, 0xcb, 0x00, 0x00])[0], 0x82);
        assert_eq!(granted(&mut channels, 1, &[0x80, 0xcb, 0x00, 0x00])[0], 0x80);
    }

    #[test]
    fn same_channel_number_of_two_clients() {
        let mut channels = Channels::default();
        let select = [0x01, 0xa4, 0x04, 0x00, 0x00];
        assert_eq!(granted(&mut channels, 1, &select)[0], 0x01);
        assert_eq!(granted(&mut channels, 2, &select)[0], 0x02);
        assert_eq!(granted(&mut channels, 2, &[0x81, 0x84, 0, 0, 8])[0], 0x82);
        assert_eq!(granted(&mut channels, 1, &[0x81, 0x84, 0, 0, 8])[0], 0x81);
        assert_eq!(granted(&mut channels, 2, &[0x00, 0x70, 0x80, 0x01])[3], 0x02);
        assert_eq!(channels.release(2), Vec::<[u8; 4]>::new());
        assert_eq!(channels.release(1), [[0x00, 0x70, 0x80, 0x01]]);
        assert!(channels.is_idle());
    }

    #[test]
    fn refused_channel_belongs_to_nobody() {
        let mut channels = Channels::default();
        let Plan::Send { then, .. } = channels.plan(1, &OPEN) else { panic!() };
        channels.settle(1, then, StatusWord::NO_CHANNEL);
        assert!(channels.is_idle());
    }

    #[test]
    fn all_channels_in_use() {
        let mut channels = Channels::default();
        for _ in 1..CHANNELS {
            granted(&mut channels, 1, &OPEN);
        }
        assert_eq!(channels.plan(1, &OPEN), Plan::Answer(StatusWord::NO_CHANNEL));
        assert_eq!(granted(&mut channels, 2, &SELECT), SELECT);
        let sw = StatusWord::CHANNEL_NOT_SUPPORTED;
        assert_eq!(channels.plan(3, &SELECT), Plan::Answer(sw));
        assert_eq!(channels.plan(3, &[0x01, 0xa4, 4, 0]), Plan::Answer(sw));
        assert_eq!(channels.plan(3, &[0x00, 0x70, 0x80, 0x01]), Plan::Answer(sw));
    }

    #[test]
    fn basic_channel_is_reused_after_select() {
        let mut channels = Channels::default();
        granted(&mut channels, 1, &SELECT);
        granted(&mut channels, 2, &OPEN);
        assert!(channels.release(1).is_empty());
        assert!(!channels.is_idle());
        assert_eq!(granted(&mut channels, 3, &[0x80, 0x84, 0, 0, 8])[0], 0x82);
        assert_eq!(granted(&mut channels, 4, &SELECT), SELECT);
    }
}
