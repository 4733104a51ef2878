// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An instance's turn: what an event makes it do.

use warifu_model::{Role, Stage};

use crate::carrier::{AnyCarrier, Arrival, Carrier, Net};
use crate::case_model::CaseModel;
use crate::event_queue::Timer;
use crate::instance::Instance;
use crate::packet::Packet;
use crate::party::{Spent, Waiting, Written};
use crate::program::Op;
use crate::recording::{Doing, Expiry};
use crate::resource::Claimant;
use crate::route::End;
use crate::tape::Act;
use crate::world::World;

/// An instance's turn. What it does to the world takes effect at once, but for the timers of the
/// carrier that it let act: [`Turn::settle`] ends it.
pub(crate) struct Turn<'a> {
    pub model: &'a CaseModel,
    pub world: &'a mut World,
    pub instance: &'a mut Instance,
    /// The end of a channel at which a carrier acted, until it is settled.
    touched: Option<Place>,
}

/// An end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub channel: u32,
    pub end: End,
}

impl<'a> Turn<'a> {
    #[inline]
    pub(crate) fn new(
        model: &'a CaseModel,
        world: &'a mut World,
        instance: &'a mut Instance,
    ) -> Turn<'a> {
        Turn { model, world, instance, touched: None }
    }

    /// Puts the timers of the carrier that acted into the queue.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if let Some(place) = self.touched.take() {
            self.set_timers(place);
        }
    }

    fn set_timers(&mut self, Place { channel, end }: Place) {
        let state = &mut self.instance.channels[channel as usize];
        let clock = usize::from(state.routes[end as usize].clock);
        let timers = state.carrier.timers(end, &self.world.clocks[clock]);
        self.world.queue.set_timers(state.places[end as usize] as usize, timers);
    }

    /// Lets a carrier act at one end of a channel.
    #[inline]
    pub(crate) fn carrier<R>(
        &mut self,
        place: Place,
        act: impl FnOnce(&mut AnyCarrier, &mut Net<'_>, &[u32]) -> R,
    ) -> R {
        if self.touched != Some(place) {
            self.settle();
            self.touched = Some(place);
        }
        let Instance { channels, counters, sizes, .. } = &mut *self.instance;
        let channel = &mut channels[place.channel as usize];
        let route = &channel.routes[place.end as usize];
        let heading = route.heading as usize;
        let World { clocks, paths, log, replay, tape, .. } = &mut *self.world;
        let mut net = Net {
            clock: &clocks[usize::from(route.clock)],
            path: &mut paths[heading],
            model: &self.model.paths[heading],
            route,
            counters,
            log,
            replay,
            tape,
        };
        act(&mut channel.carrier, &mut net, sizes)
    }

    /// Notes what is done, where the trial may be one that others repeat.
    #[inline(always)]
    pub(crate) fn tape(&mut self, act: impl FnOnce() -> Act) {
        if self.world.tape.is_some() {
            self.put_on_tape(act());
        }
    }

    #[cold]
    fn put_on_tape(&mut self, act: Act) {
        if let Some(tape) = self.world.recorder() {
            tape.push(act);
        }
    }

    // ---- events ----

    /// A program starts, the device's at its own time.
    pub(crate) fn begin(&mut self, party: usize, begins: u64) {
        let state = &mut self.instance.parties[party];
        if begins > 0 {
            state.spend(Stage::Idle, begins);
            state.waiting = Waiting::Pause;
            self.set_program(party, Some(begins));
        } else if state.role != Role::Client || self.take_resource(party) {
            self.instance.parties[party].begun = true;
            self.proceed(party);
        }
    }

    /// A packet arrives.
    pub(crate) fn deliver(&mut self, packet: &Packet) {
        let (number, end) = (packet.route.channel, packet.route.to);
        let place = Place { channel: number, end };
        match self.carrier(place, |carrier, net, _| carrier.receive(end, net, packet)) {
            Arrival::Nothing => {}
            Arrival::Request => {
                self.instance.channels[number as usize].note_request(packet);
                self.tape(|| Act::Request { channel: number as u16 });
            }
            Arrival::Open { with_content } => self.opened(place, packet, with_content),
            Arrival::Content => self.content(place, packet),
        }
    }

    /// A timer of a carrier has expired.
    pub(crate) fn expire(&mut self, channel: u32, end: End, timer: Timer) {
        let failed = self.carrier(Place { channel, end }, |carrier, net, _| {
            carrier.on_timer(end, net, timer);
            carrier.has_failed(end)
        });
        if let Some(log) = &mut self.world.log
            && log.is_of(self.instance.number)
        {
            let party = self.instance.channels[channel as usize].parties[end as usize];
            let role = self.instance.parties[party as usize].role;
            log.timers.push(Expiry { role, at_ns: self.world.now, timer: timer.into() });
        }
        if failed && !self.instance.finished {
            self.instance.fail();
            self.world.unfinished -= 1;
        }
    }

    /// The time of a program has come.
    pub(crate) fn go_on(&mut self, party: usize) {
        self.set_program(party, None);
        let state = &mut self.instance.parties[party];
        match state.waiting {
            Waiting::Time => self.proceed(party),
            Waiting::Pause => {
                state.waiting = Waiting::Time;
                if self.take_resource(party) {
                    self.have_awoken(party);
                }
            }
            // It is blocked and others may go on.
            _ => self.give_resource_back(party),
        }
    }

    /// The party's own resource has been given to it.
    pub(crate) fn have_resource(&mut self, party: usize) {
        let now = self.world.now;
        let state = &mut self.instance.parties[party];
        state.holds = true;
        state.waiting = Waiting::Time;
        let queued = now.saturating_sub(state.time);
        state.spend_until(Stage::ResourceQueue, now);
        self.note(party, Doing::Queue, queued);
        self.have_awoken(party);
    }

    /// The key store has been given to a party.
    pub(crate) fn have_key_store(&mut self, party: usize) {
        let now = self.world.now;
        let state = &mut self.instance.parties[party];
        let queued = now.saturating_sub(state.time);
        state.spend_until(Stage::ResourceQueue, now);
        state.key_store_granted = true;
        state.waiting = Waiting::Time;
        self.note(party, Doing::Queue, queued);
        self.proceed(party);
    }

    // ---- waking ----

    /// A channel is open at one end.
    fn opened(&mut self, place: Place, packet: &Packet, with_content: bool) {
        let channel = &mut self.instance.channels[place.channel as usize];
        let party = channel.parties[place.end as usize] as usize;
        let opens = place.end == End::Opener;
        let before = if opens { channel.request } else { channel.opened };
        let spent = before.map_or([0; Stage::ALL.len()], |written| written.arrived(packet, opens));
        if opens {
            channel.opened = Some(Written { time: self.world.now, spent });
        }
        let state = &mut self.instance.parties[party];
        let wakes = state.waiting == Waiting::Channel(place.channel);
        let behind = state.time < self.world.now;
        if self.world.tape.is_some() {
            self.tape(|| Act::IsBehind { party: party as u8, behind });
            let (party, channel) = (party as u8, place.channel as u16);
            self.tape(|| Act::Opened { party, channel, opens, wakes: wakes && behind });
            if let (Some(tape), true) = (&mut self.world.tape, wakes && with_content) {
                // What opened it was overtaken.
                tape.spoil();
            }
        }
        let state = &mut self.instance.parties[party];
        if wakes {
            state.at += 1;
            let brought = with_content.then(|| self.brought(party, place)).flatten();
            self.wake(party, |instance| match brought {
                Some(message) => instance.account_of(place, message, packet),
                None => spent,
            });
        } else if with_content {
            self.content(place, packet);
        }
    }

    /// The message that a program receives next, if it is of this channel. Its first bytes open the
    /// channel where the acknowledgement before them is lost, and are then what was waited for.
    fn brought(&self, party: usize, place: Place) -> Option<u32> {
        let at = self.instance.parties[party].at as usize;
        let ops = &self.model.programs.parties[party].ops[at..];
        let next = ops.iter().find_map(|op| match *op {
            Op::Receive { message, channel, .. } => Some((message, channel)),
            _ => None,
        });
        next.filter(|(_, channel)| *channel == place.channel).map(|(message, _)| message)
    }

    /// New content is there; its program may be waiting for it.
    fn content(&mut self, place: Place, packet: &Packet) {
        let Place { channel: number, end } = place;
        let channel = &self.instance.channels[number as usize];
        let party = channel.parties[end as usize] as usize;
        let state = &self.instance.parties[party];
        let Waiting::Message(message) = state.waiting else { return };
        if self.model.programs.channel_of[message as usize] != number {
            return;
        }
        let blocked = state.time < self.world.now;
        let complete = channel.carrier.has(end, message);
        self.tape(|| Act::IsBehind { party: party as u8, behind: blocked });
        if blocked {
            // It reads at once, also what is not complete.
            self.carrier(place, |carrier, net, _| carrier.read(end, net));
        }
        if complete {
            if blocked && self.world.tape.is_some() {
                let Instance { channels, write_of, .. } = &*self.instance;
                let carrier = &channels[number as usize].carrier;
                let whole = carrier.carries_last_byte(end, message, packet);
                let write = write_of[message as usize] as u16;
                self.tape(|| Act::Wake { party: party as u8, whole, write });
            }
            self.wake(party, |instance| instance.account_of(place, message, packet));
        }
    }

    /// What a party waited for has come. If it was only about to wait it just goes on; else it
    /// takes over the account of what it waited for, and waking up costs time.
    #[inline]
    fn wake(&mut self, party: usize, account: impl FnOnce(&Instance) -> Spent) {
        let now = self.world.now;
        let state = &mut self.instance.parties[party];
        state.waiting = Waiting::Time;
        if state.time >= now && (state.holds || !self.world.shared) {
            self.set_program(party, None);
            self.proceed(party);
            return;
        }
        let spent = account(self.instance);
        debug_assert_eq!(spent.iter().sum::<u64>(), now);
        let state = &mut self.instance.parties[party];
        state.spent = spent;
        state.time = now;
        if self.take_resource(party) {
            self.have_awoken(party);
        }
    }

    /// Pays for waking up, if it has run before, and goes on. The caches are cold if the
    /// processor was idle for longer than its profile's threshold; they stay so until the program
    /// waits again.
    fn have_awoken(&mut self, party: usize) {
        let state = &mut self.instance.parties[party];
        let role = state.role as usize;
        let threshold = self.model.idle_threshold[role];
        let last = self.world.resources[role].last_used;
        state.cold = last.is_none_or(|last| state.time.saturating_sub(last) > threshold);
        let cold = state.cold;
        if last.is_some() {
            self.tape(|| Act::IsCold { party: party as u8, cold });
        }
        let state = &mut self.instance.parties[party];
        if std::mem::replace(&mut state.begun, true) {
            self.spend_waking(party);
        }
        self.proceed(party);
    }

    // ---- resources ----

    /// Takes the party's own resource. If others hold it the party waits for it.
    #[inline]
    fn take_resource(&mut self, party: usize) -> bool {
        let state = &mut self.instance.parties[party];
        if self.world.shared && !state.holds {
            let claimant = Claimant { instance: self.instance.number, party: party as u32 };
            if !self.world.resources[state.role as usize].claim(claimant) {
                state.waiting = Waiting::Resource;
                return false;
            }
        }
        state.holds = true;
        true
    }

    /// The party blocks: others may go on when it has computed to its end.
    pub(crate) fn block(&mut self, party: usize, waiting: Waiting) {
        let state = &mut self.instance.parties[party];
        state.waiting = waiting;
        let time = state.time;
        if !self.world.shared {
            // Who waits from the beginning on may have done so for long.
            if time > 0 || !self.model.rested {
                self.world.resources[state.role as usize].last_used = Some(time);
                self.tape(|| Act::Rest { party: party as u8 });
            }
        } else if time > self.world.now {
            self.set_program(party, Some(time));
        } else {
            self.give_resource_back(party);
        }
    }

    /// Gives the party's resource to whoever comes next, who goes on after this turn.
    pub(crate) fn give_resource_back(&mut self, party: usize) {
        let state = &mut self.instance.parties[party];
        if self.world.shared && std::mem::replace(&mut state.holds, false) {
            let resource = &mut self.world.resources[state.role as usize];
            self.world.granted = resource.release(self.world.now);
        }
    }

    /// Sets when a program goes on.
    #[inline]
    pub(crate) fn set_program(&mut self, party: usize, time: Option<u64>) {
        if let (Some(tape), Some(_)) = (&mut self.world.tape, time) {
            tape.waits(party);
        }
        self.world.queue.set_program(self.instance.parties[party].place as usize, time);
    }
}
