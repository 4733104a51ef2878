// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The handle of a running link, and a runner that is driven by commands.

use crate::config::{Command, Config, LinkConfig};
use crate::error::LinkError;
use crate::forward::{Forwarder, Request};
use crate::packet_log::{self, LogFile, PacketLog};
use crate::random::Direction;
use crate::report::{Judge, Report, Scheduler, Window};
use crate::sys;
use crate::tun::Tun;
use rustix::event::EventfdFlags;
use rustix::mm::MlockAllFlags;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;
use warifu_model::Probability;

/// Above every normal thread and most real-time ones, below the kernel's own at 99; what the facts
/// of the lab were measured with.
const FIFO_PRIORITY: i32 = 50;

/// A link that is up. Dropping it takes it down.
#[derive(Debug)]
pub struct Link {
    requests: Sender<Request>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<Result<(), LinkError>>>,
    judge: Judge,
    log: Option<LogFile>,
}

/// What [`run`] tells as it goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Both devices forward.
    Ready {
        /// The scheduling and stamping that was granted.
        scheduler: Scheduler,
        /// Kernel release.
        kernel: String,
        /// What could not be set up as wanted.
        warnings: Vec<String>,
    },
    /// A report was asked for.
    Report(Report),
    /// The impairments were changed; this is the report of the window that they closed.
    Set(Report),
    /// The link is down; this is the report of its last window.
    Stopped(Report),
}

impl Link {
    /// Makes the devices and starts to forward; both ends work when this returns.
    ///
    /// # Errors
    /// A configuration that cannot run, missing rights, namespaces or tools, a device name in use.
    pub fn start(config: &Config) -> Result<Link, LinkError> {
        Link::start_then(config, || {})
    }

    /// As [`Link::start`]; `when_down` is called on the forwarding thread when it ends, for
    /// whatever reason.
    ///
    /// # Errors
    /// As [`Link::start`].
    pub fn start_then(
        config: &Config,
        when_down: impl FnOnce() + Send + 'static,
    ) -> Result<Link, LinkError> {
        config.check()?;
        let mut devices =
            [Tun::open(config, Direction::AToB)?, Tun::open(config, Direction::BToA)?];
        let mut warnings: Vec<String> =
            devices.iter_mut().flat_map(|tun| std::mem::take(&mut tun.warnings)).collect();
        // Last, so that no other mistake leaves an empty file.
        let (log, file) = match config.packet_log.as_deref().map(packet_log::create).transpose()? {
            Some((log, file)) => (Some(log), Some(file)),
            None => (None, None),
        };
        let kernel_stamps = devices.iter().all(|tun| tun.stamps.is_some());
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let wake = Arc::new(
            rustix::event::eventfd(0, flags).map_err(|error| LinkError::os("eventfd", error))?,
        );
        let (requests, receiver) = mpsc::channel();
        let (ready, started) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("warifu-link".to_owned()).spawn({
            let (config, wake) = (config.clone(), Arc::clone(&wake));
            move || {
                let result = forward(&config, devices, log, wake, receiver, &ready);
                when_down();
                result
            }
        });
        let thread =
            thread.map_err(|error| LinkError::os("starting the forwarding thread", error))?;
        let Ok((mut scheduler, more)) = started.recv() else {
            return Err(join(thread).err().unwrap_or(LinkError::Stopped));
        };
        warnings.extend(more);
        scheduler.kernel_stamps = kernel_stamps;
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        let judge = Judge {
            lateness_bound: config.lateness_bound,
            late_fraction_max: config.late_fraction_max,
            scheduler,
            kernel,
            warnings,
        };
        Ok(Link { requests, wake, thread: Some(thread), judge, log: file })
    }

    /// Reports on the window since the last report, and opens a new one.
    ///
    /// # Errors
    /// The link has stopped; the error says why.
    pub fn report(&mut self) -> Result<Report, LinkError> {
        self.ask(|reply| Request::Report { fresh: Box::default(), reply })
    }

    /// Flushes what is under way and goes on with other impairments, restarted random streams
    /// (under `seed`, or the one in force) and drop scripts. Returns the report of the window that
    /// this closes.
    ///
    /// # Errors
    /// Impairments that cannot be; or the link has stopped.
    pub fn set(&mut self, link: LinkConfig, seed: Option<u64>) -> Result<Report, LinkError> {
        link.check()?;
        self.ask(|reply| Request::Set { link: Box::new(link), seed, fresh: Box::default(), reply })
    }

    /// Judges the windows that are reported on from now on by another share of late packets.
    pub fn allow_late(&mut self, fraction_max: Probability) {
        self.judge.late_fraction_max = fraction_max;
    }

    /// Takes the link down and returns the report of its last window. The devices are gone when
    /// this returns.
    ///
    /// # Errors
    /// The link had stopped already; the error says why.
    pub fn stop(mut self) -> Result<Report, LinkError> {
        let report = self.ask(|reply| Request::Stop { reply })?;
        self.down()?;
        Ok(report)
    }

    /// The scheduling that the forwarding thread was granted.
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        &self.judge.scheduler
    }

    /// What could not be set up as wanted, each with what to do.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.judge.warnings
    }

    fn ask(
        &mut self,
        request: impl FnOnce(SyncSender<Box<Window>>) -> Request,
    ) -> Result<Report, LinkError> {
        let (reply, answer) = mpsc::sync_channel(1);
        let sent = self.requests.send(request(reply)).is_ok();
        // The eventfd's count only ever holds a few, so the write cannot find it full.
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        match answer.recv() {
            Ok(window) if sent => {
                // Not on the forwarding thread, which must not wait for a disk.
                self.log.as_ref().map_or(Ok(()), LogFile::wait)?;
                Ok(window.report(&self.judge))
            }
            _ => Err(self.down().err().unwrap_or(LinkError::Stopped)),
        }
    }

    fn down(&mut self) -> Result<(), LinkError> {
        self.thread.take().map_or(Ok(()), join)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // Already stopped is what is wanted.
            let _ = self.ask(|reply| Request::Stop { reply });
            let _ = self.down();
        }
    }
}

/// Runs a link by commands until one says stop or the link fails; `tell` hears what happens.
/// `to_self` sends to `commands`: through it the link says that it has failed.
///
/// # Errors
/// As [`Link::start`] and [`Link::report`]; a `set` that cannot be does not come this far if it
/// went through [`Command::parse`].
pub fn run(
    config: &Config,
    commands: &Receiver<Command>,
    to_self: Sender<Command>,
    mut tell: impl FnMut(Event),
) -> Result<Report, LinkError> {
    let mut link = Link::start_then(config, move || {
        // Wakes the loop below when the link fails by itself; gone means that it has ended.
        let _ = to_self.send(Command::Stop {});
    })?;
    let Judge { scheduler, kernel, warnings, .. } = link.judge.clone();
    tell(Event::Ready { scheduler, kernel, warnings });
    loop {
        match commands.recv() {
            Ok(Command::Report {}) => tell(Event::Report(link.report()?)),
            Ok(Command::Set { link: impairments, seed }) => {
                tell(Event::Set(link.set(*impairments, seed)?))
            }
            Ok(Command::Stop {}) | Err(_) => {
                let report = link.stop()?;
                tell(Event::Stopped(report.clone()));
                return Ok(report);
            }
        }
    }
}

/// The forwarding thread.
fn forward(
    config: &Config,
    devices: [Tun; 2],
    log: Option<PacketLog>,
    wake: Arc<OwnedFd>,
    requests: Receiver<Request>,
    ready: &SyncSender<(Scheduler, Vec<String>)>,
) -> Result<(), LinkError> {
    let mut granted = ask_for_realtime(config.realtime);
    let forwarder = Forwarder::new(config, devices, log, wake, requests)?;
    granted.0.wake_up_ns = forwarder.wake_up().0;
    // The starter waits for this, so it is there.
    let _ = ready.send(granted);
    forwarder.run()
}

/// Asks the kernel for prompt wake-ups; what was granted, and a warning for each refusal.
fn ask_for_realtime(wanted: bool) -> (Scheduler, Vec<String>) {
    // The default slack lets the kernel wake a thread 50 us late (Linux kernel/fork.c,
    // `init_task`'s timer_slack_ns).
    let timer_slack_1ns = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN)).is_ok();
    let mut scheduler = Scheduler { timer_slack_1ns, ..Scheduler::default() };
    let mut warnings = Vec::new();
    if !wanted {
        return (scheduler, warnings);
    }
    match sys::set_fifo_priority(FIFO_PRIORITY) {
        Ok(()) => (scheduler.fifo, scheduler.priority) = (true, FIFO_PRIORITY),
        Err(error) => warnings.push(format!(
            "SCHED_FIFO was refused ({error}), so packets may be late under load: run as root or \
             with CAP_SYS_NICE"
        )),
    }
    scheduler.memory_locked = lock_memory();
    if !scheduler.memory_locked {
        warnings.push(
            "memory could not be locked, so packets may wait for a page: raise `ulimit -l` or \
             give CAP_IPC_LOCK"
                .to_owned(),
        );
    }
    (scheduler, warnings)
}

/// Locks the whole process's memory as it is touched, so that no packet waits for a page; whether
/// the kernel granted it.
fn lock_memory() -> bool {
    // ONFAULT: else every thread's whole stack would be brought in.
    rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)
        .is_ok()
}

fn join(thread: JoinHandle<Result<(), LinkError>>) -> Result<(), LinkError> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
