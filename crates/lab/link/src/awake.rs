// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keeps the processors of a virtual machine from being given back to its host.
//!
//! A virtual processor with nothing to do halts, and its host has others use the physical one. What
//! wakes it, a packet or a timer, then waits until the host has time: on a busy host one timer in
//! fifty came more than half a millisecond late, and one in a thousand where something ran
//! meanwhile. So something runs on each processor that has nothing else to do, at the lowest
//! priority (`SCHED_IDLE`, sched(7)): whatever else is to run takes its place at once. Where the
//! kernel groups by session (`sched_autogroup_enabled`) that holds within the session alone: who
//! starts this beside programs of other sessions puts it into a group with `cpu.idle`.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::sys;

/// Processors that are kept awake until it is dropped.
#[derive(Debug)]
pub struct Awake {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    processors: Vec<usize>,
}

impl Awake {
    /// Keeps awake those that this process may use.
    ///
    /// # Errors
    /// The kernel's, where a thread may not be pinned or started.
    pub fn begin() -> io::Result<Awake> {
        let usable = sched_getaffinity(None)?;
        let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&at| usable.is_set(at)).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let mut awake = Awake { stop, threads: Vec::new(), processors };
        for &processor in &awake.processors {
            let stop = awake.stop.clone();
            let (tell, told) = std::sync::mpsc::channel();
            let thread = std::thread::Builder::new().name("awake".into()).spawn(move || {
                let ready = lowest_on(processor);
                let failed = ready.is_err();
                let _ = tell.send(ready);
                while !failed && !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })?;
            awake.threads.push(thread);
            told.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
        }
        Ok(awake)
    }

    /// Their numbers.
    pub fn processors(&self) -> &[usize] {
        &self.processors
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The calling thread stays on a processor and runs where nothing else does.
fn lowest_on(processor: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only)?;
    sys::set_idle_policy()
}

/// Whether this is a virtual machine: its processor says so (x86 CPUID 1, ECX bit 31), or the
/// kernel knows the hypervisor.
pub fn is_virtual() -> bool {
    let says_so = |text: String| {
        let flags = text.lines().find(|line| line.starts_with("flags"));
        flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
    };
    fs::read_to_string("/proc/cpuinfo").is_ok_and(says_so)
        || ["/sys/hypervisor/type", "/proc/device-tree/hypervisor"]
            .iter()
            .any(|path| Path::new(path).exists())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Processor time of this process, ns.
    fn spent_ns() -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    #[test]
    fn every_usable_processor_is_kept_awake_and_let_go() {
        let usable = sched_getaffinity(None).unwrap().count();
        let awake = Awake::begin().unwrap();
        assert_eq!(awake.processors().len(), usable as usize);
        // It may be the turn of other programs; not for so long.
        let begin = spent_ns();
        while spent_ns() == begin {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        drop(awake);
        // Threads are joined, so that none is left to spend any.
        let end = spent_ns();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(spent_ns() - end < 1_000_000_000);
    }
}
