// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A card that nothing resets, as behind a modem: no lost answer costs a channel for good, and
//! channels of others are left.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use warifu_card::{Card, Settings, ins};
use warifu_iotsafe_client::{CardToken, Options, Token, TokenError, Transport, TransportError};

const SELECT: [u8; 12] = [0x00, 0xa4, 0x04, 0x0c, 0x07, 0xa0, 0, 0, 5, 0x59, 0, 0x10];
const STATUS: u8 = 0xf2;
/// File control parameters (ETSI TS 102 221 section 11.1.1.3): of the MF, and of a USIM.
const MF: [u8; 10] = [0x62, 0x08, 0x82, 2, 0x78, 0x21, 0x83, 2, 0x3f, 0];
const USIM: [u8; 13] = [0x62, 0x0b, 0x82, 2, 0x78, 0x21, 0x84, 5, 0xa0, 0, 0, 0, 0x87];

/// The card, and how answers are lost.
struct World {
    card: Card,
    rng: ChaCha20Rng,
    /// How many answers to MANAGE CHANNEL's opening get lost from now on.
    lose: usize,
    /// What becomes of the next command that begins like this, which the card still gets.
    fails: Option<(Vec<u8>, TransportError)>,
    /// Whether it knows STATUS, as a SIM does; and the channels on which its USIM is in use.
    files: Option<Vec<u8>>,
    /// What the modem passes on to nobody: commands that begin like this.
    refuses: Option<Vec<u8>>,
    /// The answer to every SELECT.
    selects: Option<Vec<u8>>,
    /// The channels of killed programs, as the transport has them written down.
    orphans: Vec<u8>,
    /// Whether the line cannot be opened again.
    unplugged: bool,
    sent: Vec<Vec<u8>>,
}

/// The way there.
struct Line(Arc<Mutex<World>>);

impl World {
    fn new(files: Option<Vec<u8>>) -> Arc<Mutex<World>> {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let card = Card::with_usual_slots(Settings::default(), &mut rng).unwrap();
        Arc::new(Mutex::new(World {
            card,
            rng,
            lose: 0,
            fails: None,
            files,
            refuses: None,
            selects: None,
            orphans: Vec::new(),
            unplugged: false,
            sent: Vec::new(),
        }))
    }

    fn transmit(&mut self, apdu: &[u8]) -> Vec<u8> {
        let channel = apdu[0] & 3;
        let answer = self.card.transmit(apdu, &mut self.rng).to_bytes();
        let is_open = !answer.ends_with(&[0x68, 0x81]);
        match &self.files {
            Some(in_use) if apdu[1] == STATUS && apdu[0] < 0xa0 && is_open => {
                let place: &[u8] = if in_use.contains(&channel) { &USIM } else { &MF };
                [place, &[0x90, 0]].concat()
            }
            _ => answer,
        }
    }

    /// Opens a channel for someone else.
    fn open(&mut self) -> u8 {
        self.transmit(&[0, ins::MANAGE_CHANNEL, 0, 0, 1])[0]
    }

    /// Whether a channel is open.
    fn is_open(&mut self, channel: u8) -> bool {
        !self.card.transmit(&[channel, 0xff, 0, 0], &mut self.rng).to_bytes().starts_with(&[0x68])
    }
}

impl Transport for Line {
    fn exchange(&mut self, apdu: &[u8], _deadline: Instant) -> Result<Vec<u8>, TransportError> {
        let mut world = self.0.lock().unwrap();
        world.sent.push(apdu.to_vec());
        if world.refuses.as_ref().is_some_and(|start| apdu.starts_with(start)) {
            return Err(TransportError::Refused("+CME ERROR: 4".to_owned()));
        }
        if let (ins::SELECT, Some(answer)) = (apdu[1], &world.selects) {
            return Ok(answer.clone());
        }
        let answer = world.transmit(apdu);
        if world.lose > 0 && apdu.starts_with(&[0, ins::MANAGE_CHANNEL, 0]) {
            world.lose -= 1;
            return Err(TransportError::Timeout("the line".to_owned()));
        }
        match world.fails.take() {
            Some((start, error)) if apdu.starts_with(&start) => Err(error),
            other => {
                world.fails = other;
                Ok(answer)
            }
        }
    }

    fn reset(&mut self, _deadline: Instant) -> Result<Vec<u8>, TransportError> {
        match self.0.lock().unwrap().unplugged {
            true => Err(gone()),
            false => Ok(Vec::new()),
        }
    }

    fn resets_card(&self) -> bool {
        false
    }

    fn shares_channels(&self) -> bool {
        false
    }

    fn channel_closed(&mut self, channel: u8) {
        self.0.lock().unwrap().orphans.retain(|orphan| *orphan != channel);
    }

    fn orphaned_channels(&mut self) -> Vec<u8> {
        self.0.lock().unwrap().orphans.clone()
    }

    fn name(&self) -> String {
        "a line".to_owned()
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn token(world: &Arc<Mutex<World>>) -> CardToken {
    CardToken::new(Box::new(Line(Arc::clone(world))), Options::default())
}

fn lose_all_that_are_free(world: &Arc<Mutex<World>>, count: usize) {
    world.lock().unwrap().lose = count;
    for _ in 0..count {
        // A program of its own each time, which knows nothing of those before.
        let lost = token(world).info(soon()).unwrap_err();
        assert!(matches!(lost, TokenError::Transport(TransportError::Timeout(_))), "{lost}");
    }
}

#[test]
fn channels_with_lost_numbers_are_recovered() {
    for files in [None, Some(Vec::new())] {
        let world = World::new(files);
        lose_all_that_are_free(&world, 3);
        assert!((1..4).all(|channel| world.lock().unwrap().is_open(channel)));
        let mut one = token(&world);
        one.info(soon()).unwrap();
        let open = |world: &Arc<Mutex<World>>| {
            (1..4).filter(|channel| world.lock().unwrap().is_open(*channel)).count()
        };
        assert_eq!(open(&world), 1);
        one.release(soon());
        assert_eq!(open(&world), 0);
    }
}

#[test]
fn channels_in_use_are_not_closed() {
    // Of another program, in whose use the applet is; and of the modem, in whose use the USIM is.
    for modem in [false, true] {
        let world = World::new(modem.then(|| vec![1]));
        {
            let mut world = world.lock().unwrap();
            assert_eq!(world.open(), 1);
            if !modem {
                let mut select = SELECT;
                select[0] = 1;
                assert_eq!(world.transmit(&select), [0x90, 0]);
            }
        }
        lose_all_that_are_free(&world, 2);
        token(&world).info(soon()).unwrap();
        let mut world = world.lock().unwrap();
        assert!(world.is_open(1));
        assert!(!world.sent.iter().any(|apdu| apdu[..4] == [0, ins::MANAGE_CHANNEL, 0x80, 1]));
        let selected = world.transmit(&[0x81, ins::GET_DATA, 0, 0, 0]);
        assert_eq!(selected.ends_with(&[0x90, 0]), !modem);
    }
}

#[test]
fn all_channels_in_use() {
    let world = World::new(Some(vec![1, 2, 3]));
    (0..3).for_each(|_| assert_ne!(world.lock().unwrap().open(), 0));
    assert_eq!(token(&world).info(soon()).unwrap_err(), TokenError::NoChannel);
    assert!((1..4).all(|channel| world.lock().unwrap().is_open(channel)));
}

#[test]
fn channel_before_its_select_is_not_closed() {
    let world = World::new(Some(vec![1, 2]));
    (0..3).for_each(|_| assert_ne!(world.lock().unwrap().open(), 0));
    let late = Arc::clone(&world);
    let other = std::thread::spawn(move || {
        // Not before it was seen with nothing selected.
        while !late.lock().unwrap().sent.iter().any(|apdu| apdu[..2] == [0x83, STATUS]) {
            std::thread::sleep(Duration::from_millis(1));
        }
        late.lock().unwrap().files = Some(vec![1, 2, 3]);
    });
    assert_eq!(token(&world).info(soon()).unwrap_err(), TokenError::NoChannel);
    other.join().unwrap();
    assert!(world.lock().unwrap().is_open(3));
}

#[test]
fn channels_of_killed_programs_are_closed() {
    let world = World::new(Some(vec![2]));
    {
        let mut world = world.lock().unwrap();
        (1..4).for_each(|channel| assert_eq!(world.open(), channel));
        // Channel 1 was the killed program's; 2 has become the modem's since; 3 is another's.
        for channel in [1, 3] {
            let mut select = SELECT;
            select[0] = channel;
            assert_eq!(world.transmit(&select), [0x90, 0]);
        }
        world.orphans = vec![1, 2];
    }
    let mut one = token(&world);
    one.info(soon()).unwrap();
    one.release(soon());
    let mut world = world.lock().unwrap();
    assert_eq!([1, 2, 3].map(|channel| world.is_open(channel)), [false, true, true]);
    assert!(world.orphans.is_empty());
}

#[test]
fn memory_failure_and_closed_channel_are_told_as_such() {
    for (sw, says) in [
        ([0x65, 0x81], "the card refused SELECT with 6581, memory failure"),
        ([0x68, 0x81], "the card refused SELECT with 6881, logical channel not open or not"),
    ] {
        let world = World::new(None);
        world.lock().unwrap().selects = Some(sw.to_vec());
        let error = token(&world).info(soon()).unwrap_err();
        assert!(error.to_string().starts_with(says), "{error}");
        assert!((1..4).all(|channel| !world.lock().unwrap().is_open(channel)), "it was given back");
    }
}

fn late() -> TransportError {
    TransportError::Timeout("the line".to_owned())
}

#[test]
fn release_after_a_lost_answer_closes_the_channel() {
    let world = World::new(None);
    let mut one = token(&world);
    one.info(soon()).unwrap();
    let random = [0x81, ins::GET_RANDOM];
    world.lock().unwrap().fails = Some((random.to_vec(), late()));
    one.random(&mut [0; 8], soon()).unwrap_err();
    assert!(world.lock().unwrap().is_open(1));
    one.release(soon());
    assert!((1..4).all(|channel| !world.lock().unwrap().is_open(channel)));
}

fn gone() -> TransportError {
    TransportError::Gone("the line went away".to_owned())
}

/// The modem has used channel 1 for itself since it is back: nobody else closes that.
fn assert_closes_nothing(world: &Arc<Mutex<World>>, one: &mut CardToken) {
    let before = world.lock().unwrap().sent.len();
    one.info(soon()).unwrap();
    let sent = &world.lock().unwrap().sent[before..];
    let closes = |apdu: &Vec<u8>| apdu.starts_with(&[0, ins::MANAGE_CHANNEL, 0x80]);
    assert!(!sent.iter().any(closes), "{sent:02x?}");
}

#[test]
fn unplugged_modem_forgets_channels() {
    // While the applet is selected, and while the channel is given back.
    for at in [[0x01, 0xa4, 4], [0, ins::MANAGE_CHANNEL, 0x80]] {
        let world = World::new(None);
        let mut one = token(&world);
        world.lock().unwrap().fails = Some((at.to_vec(), gone()));
        if one.info(soon()).is_ok() {
            one.release(soon());
        }
        assert!(world.lock().unwrap().fails.is_none(), "it went away");
        assert_closes_nothing(&world, &mut one);
    }
    // After an answer that was lost, before the line was opened again.
    for release in [false, true] {
        let world = World::new(None);
        let mut one = token(&world);
        one.info(soon()).unwrap();
        world.lock().unwrap().fails = Some((vec![0x81, ins::GET_RANDOM], late()));
        one.random(&mut [0; 8], soon()).unwrap_err();
        world.lock().unwrap().unplugged = true;
        match release {
            true => one.release(soon()),
            false => assert_eq!(one.info(soon()).unwrap_err(), gone().into()),
        }
        world.lock().unwrap().unplugged = false;
        assert_closes_nothing(&world, &mut one);
    }
}

#[test]
fn modem_that_refuses_to_close_a_channel() {
    let world = World::new(None);
    let mut one = token(&world);
    one.info(soon()).unwrap();
    world.lock().unwrap().fails = Some((vec![0x81, ins::GET_RANDOM], late()));
    one.random(&mut [0; 8], soon()).unwrap_err();
    world.lock().unwrap().refuses = Some(vec![0, ins::MANAGE_CHANNEL, 0x80]);
    one.info(soon()).unwrap();
}

#[test]
fn modem_that_refuses_the_basic_channel() {
    let world = World::new(None);
    (0..3).for_each(|_| assert_ne!(world.lock().unwrap().open(), 0));
    world.lock().unwrap().refuses = Some(vec![0x80, STATUS]);
    let late = Arc::clone(&world);
    let other = std::thread::spawn(move || {
        // Another program ends, once we have been refused.
        while !late.lock().unwrap().sent.iter().any(|apdu| apdu[..2] == [0x80, STATUS]) {
            std::thread::sleep(Duration::from_millis(1));
        }
        late.lock().unwrap().transmit(&[0, ins::MANAGE_CHANNEL, 0x80, 2]);
    });
    token(&world).info(soon()).unwrap();
    other.join().unwrap();
}
