// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The loop that moves packets: one thread that sleeps in epoll until a packet, a due time or a
//! command comes.
//!
//! It sleeps as long as it can: on two processors a spinning forwarder takes one from the programs
//! under measurement. But a thread runs only some time after its timer, and packets would all be so
//! late. So the timer is set earlier by what half of the wake-ups at the start stayed below, and
//! what is left after a quicker one is waited for awake. On two virtual processors (Linux 6.18,
//! other programs running, 1,000 round trips of 60 and of 150 ms):
//!
//! | timer set earlier by | median lateness | RTT's median above nominal | awake for each packet |
//! |---|---|---|---|
//! | nothing | 17 us | 79 us | 0 |
//! | the median of wake-ups, 17 us | 0.03 us | 46 us | 1 us |
//! | their 90th percentile, 21 us | 0.02 us | 41 us | 4 us |
//! | 100 us | 0.02 us | 44 us | 58 us |
//!
//! What is left of the RTT are the system calls of the programs that measure it and of the link.
//!
//! A packet's time counts from the kernel's stamp (see `stamps`); without one, from a clock reading
//! made after it was read, since one from before would shorten its delay.

use crate::config::{Config, LinkConfig};
use crate::delay_line::DelayLine;
use crate::error::LinkError;
use crate::impairment::{Arrival, Cause, Fate, Path, carries_tcp};
use crate::packet_log::{Logged, LoggedFate, PacketLog};
use crate::pool::{POOL_PACKETS, Pool};
use crate::random::{Direction, Streams};
use crate::report::{Edge, Window};
use crate::tun::Tun;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use warifu_model::Nanos;
use warifu_os::clock::{now, timespec};

/// How long before a packet is due the timer first fires. A processor that has been idle for long
/// takes some tens of microseconds to wake (on a virtual machine its host may have given it away),
/// one that has just gone idle far less: so the thread wakes early, sets the timer anew and sleeps
/// on.
const EARLY: Nanos = Nanos(100_000);
/// Wake-ups that are timed at the start, and how long the thread sleeps before each: a tenth of a
/// second in all.
const WAKE_UPS: usize = 33;
const IDLE: Nanos = Nanos(3_000_000);
/// Packets read from one device before the other is looked at.
const BATCH: usize = 32;
/// For how long packets are waited for awake, one after the other, before the devices are looked at
/// again: their queues would overflow if packets were due so close to each other for long.
const LOOK_AGAIN: Nanos = Nanos(100_000);

const TIMER: u64 = 2;
const WAKE: u64 = 3;

/// What the owner of the link asks of the loop. Each answer is the window that was closed.
pub(crate) enum Request {
    Report {
        fresh: Box<Window>,
        reply: SyncSender<Box<Window>>,
    },
    Set {
        link: Box<LinkConfig>,
        seed: Option<u64>,
        fresh: Box<Window>,
        reply: SyncSender<Box<Window>>,
    },
    Stop {
        reply: SyncSender<Box<Window>>,
    },
}

/// The state of the forwarding thread.
pub(crate) struct Forwarder {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// The instant for which the timer is set.
    armed: Option<Nanos>,
    /// How much earlier than needed it is set, since the thread wakes so much later.
    wake_up: Nanos,
    wake: Arc<OwnedFd>,
    requests: Receiver<Request>,
    /// Indexed by the direction of the packets read from them.
    devices: [Tun; 2],
    lanes: [Lane; 2],
    pool: Pool,
    log: Option<PacketLog>,
    window: Box<Window>,
    lateness_bound: Nanos,
    mtu: usize,
    seed: u64,
    /// This thread's /proc/thread-self/schedstat, and /proc/stat.
    schedstat: Option<File>,
    stat: Option<File>,
}

/// One direction: its impairments, and the packets under way.
struct Lane {
    path: Path,
    streams: Streams,
    line: DelayLine<Packet>,
    last_arrival: Nanos,
}

struct Packet {
    buffer: Box<[u8]>,
    length: usize,
}

impl Forwarder {
    /// Sets up the loop on the calling thread, which must be the one to [`Forwarder::run`] it.
    pub(crate) fn new(
        config: &Config,
        devices: [Tun; 2],
        log: Option<PacketLog>,
        wake: Arc<OwnedFd>,
        requests: Receiver<Request>,
    ) -> Result<Forwarder, LinkError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| LinkError::os("epoll_create", error))?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(|error| LinkError::os("timerfd_create", error))?;
        let mtu = config.mtu as usize;
        let mut forwarder = Forwarder {
            epoll,
            timer,
            armed: None,
            wake_up: Nanos::ZERO,
            wake,
            requests,
            devices,
            lanes: Direction::BOTH.map(|direction| Lane::new(&config.link, config.seed, direction)),
            pool: Pool::new(mtu),
            log,
            window: Box::default(),
            lateness_bound: config.lateness_bound,
            mtu,
            seed: config.seed,
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
            stat: File::open("/proc/stat").ok(),
        };
        forwarder.watch(&[TIMER])?;
        forwarder.wake_up = forwarder.usual_wake_up()?;
        forwarder.watch(&[0, 1, WAKE])?;
        forwarder.window.start = forwarder.edge();
        forwarder.window.seed = config.seed;
        Ok(forwarder)
    }

    /// Forwards until a stop request or an error of the devices.
    pub(crate) fn run(mut self) -> Result<(), LinkError> {
        let mut events = Vec::with_capacity(8);
        loop {
            let wait = self.arm()?;
            match epoll::wait(&self.epoll, spare_capacity(&mut events), wait.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(LinkError::os("epoll_wait", error)),
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    TIMER => {
                        read_counter(&self.timer);
                        self.armed = None;
                    }
                    WAKE => {
                        read_counter(self.wake.as_fd());
                        if self.serve() {
                            return Ok(());
                        }
                    }
                    device => self.receive(Direction::BOTH[device as usize & 1])?,
                }
            }
            self.deliver_due(now() + LOOK_AGAIN);
        }
    }

    /// How late the timer usually wakes this thread after the short sleep that comes before a
    /// packet: the median of some.
    fn usual_wake_up(&mut self) -> Result<Nanos, LinkError> {
        let mut late = [Nanos::ZERO; WAKE_UPS];
        for one in &mut late {
            let due = now() + IDLE + EARLY;
            for at in [due - EARLY, due] {
                self.set_timer(at)?;
                while now() < at {
                    let mut events = Vec::with_capacity(1);
                    match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                        Ok(_) | Err(Errno::INTR) => read_counter(&self.timer),
                        Err(error) => return Err(LinkError::os("epoll_wait", error)),
                    }
                }
            }
            *one = now() - due;
        }
        late.sort_unstable();
        self.armed = None;
        Ok(late[WAKE_UPS / 2].min(EARLY))
    }

    /// The delay of wake-ups for which the timer is set earlier.
    pub(crate) fn wake_up(&self) -> Nanos {
        self.wake_up
    }

    fn watch(&self, which: &[u64]) -> Result<(), LinkError> {
        let sources = [
            (self.devices[0].as_fd(), 0),
            (self.devices[1].as_fd(), 1),
            (self.timer.as_fd(), TIMER),
            (self.wake.as_fd(), WAKE),
        ];
        for (source, data) in sources.into_iter().filter(|(_, data)| which.contains(data)) {
            epoll::add(&self.epoll, source, epoll::EventData::new_u64(data), epoll::EventFlags::IN)
                .map_err(|error| LinkError::os("epoll_ctl", error))?;
        }
        Ok(())
    }

    /// Sets the timer for the next due packet or a little earlier, if it is not set so already. The
    /// time to wait for events beside it: none if the packet is due before it could wake this
    /// thread.
    fn arm(&mut self) -> Result<Option<Timespec>, LinkError> {
        let Some(due) = self.next_due() else { return Ok(None) };
        let left = due - now();
        if left <= self.wake_up {
            return Ok(Some(Timespec::default()));
        }
        let at = if left > EARLY + EARLY { due - EARLY } else { due - self.wake_up };
        if self.armed != Some(at) {
            self.set_timer(at)?;
        }
        Ok(None)
    }

    fn set_timer(&mut self, at: Nanos) -> Result<(), LinkError> {
        let once = Itimerspec { it_interval: Timespec::default(), it_value: timespec(at) };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)
            .map_err(|error| LinkError::os("timerfd_settime", error))?;
        self.armed = Some(at);
        Ok(())
    }

    fn next_due(&self) -> Option<Nanos> {
        match (self.lanes[0].line.next_due(), self.lanes[1].line.next_due()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Reads a batch of packets that travel in `direction`, delivering what falls due meanwhile.
    fn receive(&mut self, direction: Direction) -> Result<(), LinkError> {
        for _ in 0..BATCH {
            let mut buffer = self.pool.take();
            match rustix::io::read(self.devices[direction.index()].as_fd(), &mut buffer[..]) {
                Ok(length) => {
                    let now = now();
                    self.arrive(direction, now, Packet { buffer, length });
                    if self.next_due().is_some_and(|due| due <= now) {
                        self.deliver_due(now);
                    }
                }
                Err(error) => {
                    self.pool.give(buffer);
                    return match error {
                        Errno::AGAIN | Errno::INTR => Ok(()),
                        _ => Err(LinkError::os(
                            "reading from the TUN device (was it, or its namespace, deleted?)",
                            error,
                        )),
                    };
                }
            }
        }
        Ok(())
    }

    fn arrive(&mut self, direction: Direction, now: Nanos, packet: Packet) {
        let bytes = packet.length as u64;
        let counters = &mut self.window.counters[direction.index()];
        counters.packets_in += 1;
        counters.bytes_in += bytes;
        let content = &packet.buffer[..packet.length];
        let stamp = match &mut self.devices[direction.index()].stamps {
            Some(stamps) => stamps.of(content, now),
            None => Some(now),
        };
        counters.unstamped += u64::from(stamp.is_none());
        let Lane { path, streams, line, last_arrival } = &mut self.lanes[direction.index()];
        // Two processors may stamp packets in one order and queue them in the other, a moment
        // later.
        *last_arrival = stamp.unwrap_or(now).max(*last_arrival);
        let arrival = *last_arrival;
        let logged = |due: Nanos, fate| Logged { packet: content, direction, arrival, due, fate };
        let (cause, fate) = if packet.length > self.mtu {
            (&mut counters.oversize, LoggedFate::Oversize)
        } else {
            match path.arrive(arrival, Arrival { bytes, tcp: carries_tcp(content) }, streams) {
                Fate::Deliver(due) if due <= now && line.is_empty() => {
                    self.hand_over(direction, due, now, content);
                    // It does not wait for its record.
                    self.note(&logged(due, LoggedFate::Delivered));
                    return self.pool.give(packet.buffer);
                }
                Fate::Deliver(due) if self.pool.has_room() => {
                    self.note(&logged(due, LoggedFate::Delivered));
                    return self.lanes[direction.index()].line.push(due, packet);
                }
                Fate::Deliver(_) => (&mut counters.dropped_by_overload, LoggedFate::Overload),
                Fate::Drop(Cause::Loss) => (&mut counters.dropped_by_loss, LoggedFate::Loss),
                Fate::Drop(Cause::Script) => (&mut counters.dropped_by_script, LoggedFate::Script),
                Fate::Drop(Cause::Queue) => (&mut counters.dropped_by_queue, LoggedFate::Queue),
            }
        };
        *cause += 1;
        self.note(&logged(Nanos::ZERO, fate));
        self.pool.give(packet.buffer);
    }

    fn note(&mut self, logged: &Logged<'_>) {
        if let Some(log) = &mut self.log {
            log.note(logged);
        }
    }

    /// Hands over all that is due, the earliest first, also what falls due meanwhile, and until an
    /// instant what is due sooner than the timer could wake this thread for it.
    fn deliver_due(&mut self, awake_until: Nanos) {
        loop {
            let due =
                self.lanes.each_ref().map(|lane| lane.line.next_due().unwrap_or(Nanos(u64::MAX)));
            let (direction, due) = if due[0] <= due[1] {
                (Direction::AToB, due[0])
            } else {
                (Direction::BToA, due[1])
            };
            let now = self.wait_awake(due, awake_until);
            let Some((due, packet)) = self.lanes[direction.index()].line.pop_due(now) else {
                return;
            };
            self.hand_over(direction, due, now, &packet.buffer[..packet.length]);
            self.pool.give(packet.buffer);
        }
    }

    /// Waits without sleeping if `due` is nearer than a wake-up, and it is not yet `until`; the
    /// time then.
    fn wait_awake(&mut self, due: Nanos, until: Nanos) -> Nanos {
        let begun = now();
        let left = due - begun;
        if left == Nanos::ZERO || left > self.wake_up || begun >= until {
            return begun;
        }
        self.window.spun_ns += left.0;
        loop {
            std::hint::spin_loop();
            let now = now();
            if now >= due {
                return now;
            }
        }
    }

    /// Writes a packet into the device at the other end; `now` is a fresh reading.
    fn hand_over(&mut self, direction: Direction, due: Nanos, now: Nanos, packet: &[u8]) {
        let other_end = self.devices[1 - direction.index()].as_fd();
        match rustix::io::write(other_end, packet) {
            Ok(_) => {
                let bytes = packet.len() as u64;
                self.window.delivered(direction, bytes, due, now, self.lateness_bound);
            }
            // The device is down, or the kernel is out of memory: the packet is lost, and the
            // report says so.
            Err(_) => self.window.counters[direction.index()].undeliverable += 1,
        }
    }

    /// Answers what was asked; whether to stop.
    fn serve(&mut self) -> bool {
        while let Ok(request) = self.requests.try_recv() {
            match request {
                Request::Report { fresh, reply } => self.turn_over(fresh, &reply),
                Request::Set { link, seed, fresh, reply } => {
                    self.flush();
                    self.seed = seed.unwrap_or(self.seed);
                    self.lanes =
                        Direction::BOTH.map(|direction| Lane::new(&link, self.seed, direction));
                    self.turn_over(fresh, &reply);
                }
                Request::Stop { reply } => {
                    self.turn_over(Box::default(), &reply);
                    return true;
                }
            }
        }
        false
    }

    /// Closes the window, sends it to whoever asked, and opens `fresh`.
    fn turn_over(&mut self, mut fresh: Box<Window>, reply: &SyncSender<Box<Window>>) {
        let edge = self.edge();
        if let Some(log) = &mut self.log {
            log.flush();
        }
        fresh.start = edge;
        fresh.seed = self.seed;
        let mut closed = std::mem::replace(&mut self.window, fresh);
        closed.end = edge;
        // Whoever asked may have gone; the window then goes with them.
        let _ = reply.send(closed);
    }

    fn flush(&mut self) {
        for (lane, counters) in self.lanes.iter_mut().zip(&mut self.window.counters) {
            while let Some((_, packet)) = lane.line.pop() {
                counters.flushed += 1;
                self.pool.give(packet.buffer);
            }
        }
    }

    fn edge(&self) -> Edge {
        Edge {
            at: now(),
            under_way: self.lanes.each_ref().map(|lane| lane.line.len() as u64),
            device_dropped: self.devices.each_ref().map(Tun::dropped_before_reading),
            // Time on a processor, time waiting for one, time slices (Linux
            // Documentation/scheduler/sched-stats.rst).
            run_queue_wait_ns: self.schedstat.as_ref().and_then(|file| number_in(file, 1)),
            // "cpu", user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5)).
            steal_ticks: self.stat.as_ref().and_then(|file| number_in(file, 8)),
        }
    }
}

impl Lane {
    fn new(link: &LinkConfig, seed: u64, direction: Direction) -> Lane {
        let line = DelayLine::with_capacity(POOL_PACKETS);
        Lane {
            path: Path::new(link, direction),
            streams: Streams::new(seed, direction),
            line,
            last_arrival: Nanos::ZERO,
        }
    }
}

/// Takes back the readiness of a timerfd or an eventfd.
fn read_counter(counter: impl AsFd) {
    let mut count = [0_u8; 8];
    // EAGAIN means that there was none, which is as well.
    let _ = rustix::io::read(counter, &mut count);
}

/// The number at `index` on the first line of a /proc file.
fn number_in(file: &File, index: usize) -> Option<u64> {
    let mut text = [0_u8; 256];
    let length = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..length])
        .ok()?
        .lines()
        .next()?
        .split_ascii_whitespace()
        .nth(index)?
        .parse()
        .ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;
    use std::sync::mpsc;

    /// A forwarder between sockets in the place of devices, and their other ends.
    fn forwarder() -> (Forwarder, [UnixDatagram; 2]) {
        let ((a, end_a), (b, end_b)) =
            (UnixDatagram::pair().unwrap(), UnixDatagram::pair().unwrap());
        let devices = [a, b].map(|socket| {
            socket.set_nonblocking(true).unwrap();
            Tun::of_socket(socket.into())
        });
        let wake = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let (_, requests) = mpsc::channel();
        let config = Config::between("a", "b");
        let forwarder = Forwarder::new(&config, devices, None, wake.into(), requests).unwrap();
        (forwarder, [end_a, end_b])
    }

    #[test]
    fn devices_are_looked_at_while_packets_are_due_one_after_the_other() {
        let (mut forwarder, [_a, b]) = forwarder();
        forwarder.wake_up = Nanos(50_000);
        let begin = now();
        for number in 0..20_000 {
            let packet = Packet { buffer: forwarder.pool.take(), length: 40 };
            forwarder.lanes[0].line.push(begin + Nanos(number * 25_000), packet);
        }
        forwarder.deliver_due(now() + LOOK_AGAIN);
        assert!(forwarder.lanes[0].line.len() > 10_000, "half a second without a look");
        // It does not sleep until the next either.
        forwarder.wake_up = Nanos::from_secs(1);
        assert_eq!(forwarder.arm().unwrap(), Some(Timespec::default()));
        assert_eq!(b.recv(&mut [0; 64]).unwrap(), 40);
    }

    #[test]
    fn timer_wakes_for_what_is_due_later() {
        let (mut forwarder, _ends) = forwarder();
        assert!(forwarder.arm().unwrap().is_none() && forwarder.armed.is_none());
        let due = now() + Nanos::from_secs(60);
        let packet = Packet { buffer: forwarder.pool.take(), length: 40 };
        forwarder.lanes[1].line.push(due, packet);
        assert!(forwarder.arm().unwrap().is_none());
        assert_eq!(forwarder.armed, Some(due - EARLY));
    }
}
