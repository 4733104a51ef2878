// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The event loop: begins exchanges when their time comes, and sees each to its end.

use std::collections::HashMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::time::{ClockId, clock_gettime};

use crate::alarm::Alarm;
use crate::config::Config;
use crate::error::Error;
use crate::exchange::Exchange;
use crate::outcome::Outcome;
use crate::pauses::Pauses;

/// How often timeouts and the wish to stop are looked at.
const TICK: Duration = Duration::from_millis(100);
/// How far ahead exchanges are prepared, so that their beginning is not delayed by it.
const AHEAD: Duration = Duration::from_millis(5);
/// Descriptors served at once.
const EVENTS: usize = 256;

/// Marks the timer among the descriptors, which are marked by their trials.
const ALARM: u64 = u64::MAX;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every exchange has ended.
    Done,
    /// The wish to stop was heard; exchanges under way are not reported.
    Stopped,
}

/// What a run did, besides its outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Exchanges reported.
    pub reported: u32,
    /// Those of them that failed.
    pub failed: u32,
    /// The latest beginning of an exchange after its time, ns.
    pub latest_ns: u64,
    /// Time since the first exchange was due, ns.
    pub elapsed_ns: u64,
    /// Processor time of this process since then, ns. Near `elapsed_ns`, the client itself was
    /// the bottleneck, and the rate has to come down.
    pub cpu_ns: u64,
}

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
            .map_err(Error::system("epoll cannot be used"))?;
        let alarm = Alarm::new().map_err(Error::system("a timer cannot be made"))?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&poll, &alarm, epoll::EventData::new_u64(ALARM), flags)
            .map_err(Error::system("a timer cannot be watched"))?;
        Ok(Engine { config, poll, alarm, live: HashMap::new(), totals: Totals::default() })
    }

    fn measure(
        &mut self,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(Totals),
        stop: &AtomicBool,
    ) -> Result<Ended, Error> {
        let mut pauses = Pauses::new(self.config);
        let begun = Instant::now();
        let cpu_before_ns = process_cpu_ns();
        let mut due = begun + AHEAD;
        let mut next = 0;
        let mut ready: Vec<Exchange> = Vec::new();
        let mut ended = Vec::new();
        let mut told = begun;
        while next < self.config.trials || !self.live.is_empty() {
            if stop.load(Ordering::Relaxed) {
                self.live.clear();
                return Ok(Ended::Stopped);
            }
            let now = Instant::now();
            if next < self.config.trials && ready.is_empty() && now + AHEAD >= due {
                ready = self.prepare(next)?;
            }
            let free = !self.config.alone || self.live.is_empty();
            if now >= due && free && !ready.is_empty() {
                next += self.config.concurrent;
                for exchange in ready.drain(..) {
                    self.begin(exchange, due, &mut ended)?;
                }
                due += pauses.next();
            }
            if next < self.config.trials {
                let at = if ready.is_empty() { due - AHEAD } else { due };
                self.alarm.set(at).map_err(Error::system("a timer cannot be set"))?;
            }
            self.turn(&mut ended)?;
            for exchange in ended.drain(..) {
                self.report(&exchange, output)?;
                if self.config.alone {
                    due = due.max(Instant::now() + pauses.next());
                }
            }
            self.totals.elapsed_ns = nanos(begun.elapsed());
            self.totals.cpu_ns = process_cpu_ns() - cpu_before_ns;
            if told.elapsed() >= Duration::from_secs(1) {
                progress(self.totals);
                told = Instant::now();
            }
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
        exchange.late_ns = nanos(Instant::now() - due);
        self.totals.latest_ns = self.totals.latest_ns.max(exchange.late_ns);
        exchange.start(self.config);
        if self.is_over(&exchange, Instant::now()) {
            ended.push(exchange);
            return Ok(());
        }
        let trial = exchange.trial;
        // Level-triggered: libcoap reads one datagram of a socket at a time.
        let data = epoll::EventData::new_u64(u64::from(trial));
        epoll::add(&self.poll, &exchange, data, epoll::EventFlags::IN)
            .map_err(Error::system("a context cannot be watched"))?;
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
            Err(error) => return Err(Error::system("epoll cannot be used")(error)),
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
        let timeout = Duration::from_secs_f64(self.config.timeout_s);
        exchange.is_over(now, timeout, Duration::from_secs_f64(self.config.linger_s))
    }

    fn end(&mut self, trial: u32, ended: &mut Vec<Exchange>) -> Result<(), Error> {
        if let Some(exchange) = self.live.remove(&trial) {
            epoll::delete(&self.poll, &exchange)
                .map_err(Error::system("a context cannot be left"))?;
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
        self.totals.reported += 1;
        self.totals.failed += u32::from(outcome.error.is_some());
        if outcome.error.is_none() {
            self.check(&outcome)?;
        }
        let mut line = serde_json::to_vec(&outcome).map_err(|error| Error::System {
            what: "an outcome cannot be written",
            source: error.into(),
        })?;
        line.push(b'\n');
        let written = output.write_all(&line).and_then(|()| output.flush());
        written.map_err(Error::system("the output failed"))
    }
}

/// Processor time of the whole process so far, ns.
fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
