// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The event loop: begins exchanges when their time comes, and sees each to its end.

use std::collections::HashMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use warifu_open_loop::{Ended, Meter, Schedule, TICK, Totals, write_line};
use warifu_os::Alarm;

use crate::config::Config;
use crate::error::Error;
use crate::exchange::Exchange;
use crate::outcome::Outcome;

/// Descriptors served at once.
const EVENTS: usize = 256;

/// Marks the timer among the descriptors, which are marked by their trials.
const ALARM: u64 = u64::MAX;

/// Runs all exchanges and writes one line of JSON for each as it ends.
pub fn run(
    config: &Config,
    output: &mut dyn Write,
    progress: &mut dyn FnMut(Totals),
    stop: &AtomicBool,
) -> Result<(Ended, Totals), Error> {
    let mut engine = Engine::new(config)?;
    let ended = engine.measure(output, progress, stop)?;
    Ok((ended, engine.totals))
}

struct Engine<'a> {
    config: &'a Config,
    poll: OwnedFd,
    /// Ends a wait when the next exchanges are due.
    alarm: Alarm,
    /// By trial.
    live: HashMap<u32, Exchange>,
    totals: Totals,
}

impl<'a> Engine<'a> {
    fn new(config: &'a Config) -> Result<Engine<'a>, Error> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(Error::system("cannot wait for sockets (epoll)"))?;
        let alarm = Alarm::new().map_err(Error::system("cannot make a timer"))?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&poll, &alarm, epoll::EventData::new_u64(ALARM), flags)
            .map_err(Error::system("cannot watch the timer"))?;
        Ok(Engine { config, poll, alarm, live: HashMap::new(), totals: Totals::default() })
    }

    fn measure(
        &mut self,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(Totals),
        stop: &AtomicBool,
    ) -> Result<Ended, Error> {
        let mut meter = Meter::start();
        let mut schedule = Schedule::new(&self.config.pace(), meter.begun(), false);
        let mut ready: Vec<Exchange> = Vec::new();
        let mut ended = Vec::new();
        while schedule.has_more() || !self.live.is_empty() {
            if stop.load(Ordering::Relaxed) {
                self.live.clear();
                return Ok(Ended::Stopped);
            }
            let now = Instant::now();
            if ready.is_empty()
                && let Some(first) = schedule.to_prepare(now)
            {
                ready = self.prepare(first)?;
            }
            if !ready.is_empty() && schedule.may_begin(now, self.live.is_empty()) {
                for exchange in ready.drain(..) {
                    self.begin(exchange, schedule.due(), &mut ended)?;
                }
                schedule.begun();
            }
            if let Some(at) = schedule.wake_at(!ready.is_empty()) {
                self.alarm.set(at).map_err(Error::system("cannot set a timer"))?;
            }
            self.turn(&mut ended)?;
            for exchange in ended.drain(..) {
                self.report(&exchange, output)?;
                schedule.ended(exchange.trial, Instant::now());
            }
            meter.update(&mut self.totals, progress);
        }
        progress(self.totals);
        Ok(Ended::Done)
    }

    /// The exchanges that begin at the same moment.
    fn prepare(&self, first: u32) -> Result<Vec<Exchange>, Error> {
        let trials = first..first + self.config.concurrent;
        trials.map(|trial| Exchange::prepare(trial, self.config)).collect()
    }

    fn begin(
        &mut self,
        mut exchange: Exchange,
        due: Instant,
        ended: &mut Vec<Exchange>,
    ) -> Result<(), Error> {
        exchange.late_ns = self.totals.note_late(Instant::now() - due);
        exchange.start(self.config);
        if self.is_over(&exchange, Instant::now()) {
            ended.push(exchange);
            return Ok(());
        }
        let trial = exchange.trial;
        // Level-triggered: libcoap reads one datagram of a socket at a time.
        let data = epoll::EventData::new_u64(u64::from(trial));
        epoll::add(&self.poll, &exchange, data, epoll::EventFlags::IN)
            .map_err(Error::system("cannot watch a socket"))?;
        self.live.insert(trial, exchange);
        Ok(())
    }

    /// Waits for descriptors once, and serves those that are ready.
    fn turn(&mut self, ended: &mut Vec<Exchange>) -> Result<(), Error> {
        let mut events = Vec::with_capacity(EVENTS);
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        let wait = if ended.is_empty() { tick } else { Timespec { tv_sec: 0, tv_nsec: 0 } };
        let spare = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.poll, spare, Some(&wait)) {
            Ok(_) => {}
            Err(error) if error == rustix::io::Errno::INTR => return Ok(()),
            Err(error) => return Err(Error::system("cannot wait for sockets (epoll)")(error)),
        }
        for event in events {
            let Ok(trial) = u32::try_from(event.data.u64()) else {
                continue;
            };
            if let Some(exchange) = self.live.get_mut(&trial) {
                exchange.process();
            }
        }
        let now = Instant::now();
        let live = self.live.iter();
        let over = live.filter(|(_, exchange)| self.is_over(exchange, now));
        let over: Vec<u32> = over.map(|(&trial, _)| trial).collect();
        for trial in over {
            self.end(trial, ended)?;
        }
        Ok(())
    }

    fn is_over(&self, exchange: &Exchange, now: Instant) -> bool {
        let timeout = self.config.pace().timeout();
        exchange.is_over(now, timeout, Duration::from_secs_f64(self.config.linger_s))
    }

    fn end(&mut self, trial: u32, ended: &mut Vec<Exchange>) -> Result<(), Error> {
        if let Some(exchange) = self.live.remove(&trial) {
            epoll::delete(&self.poll, &exchange)
                .map_err(Error::system("cannot stop watching a socket"))?;
            ended.push(exchange);
        }
        Ok(())
    }

    /// A run whose server gives another body measures something else, and one whose datagrams were
    /// not seen has nothing to tell of them.
    fn check(&self, outcome: &Outcome) -> Result<(), Error> {
        if let Some(expected) = self.config.body_bytes
            && outcome.body_bytes != expected
        {
            return Err(Error::Server(format!(
                "trial {}: the response's body has {} B: body_bytes is {expected}; PUT a body of \
                 that length to {} first",
                outcome.trial, outcome.body_bytes, self.config.path
            )));
        }
        if outcome.datagrams_sent == 0 || outcome.datagrams_received == 0 {
            return Err(Error::Libcoap(
                "it sends or receives by other calls than send() and recv(), so its datagrams \
                 cannot be counted; use libcoap 4.3.1 of Debian 12",
            ));
        }
        Ok(())
    }

    fn report(&mut self, exchange: &Exchange, output: &mut dyn Write) -> Result<(), Error> {
        let outcome = exchange.outcome(self.config.datagrams);
        self.totals.count(outcome.error.is_some());
        if outcome.error.is_none() {
            self.check(&outcome)?;
        }
        write_line(output, &outcome).map_err(Error::system("cannot write the results"))
    }
}
