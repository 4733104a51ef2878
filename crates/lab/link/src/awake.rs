// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keeps the processors of a virtual machine from being given back to its host.
//!
//! A virtual processor with nothing to do halts, and its host has others use the physical one. What
//! wakes it, a packet or a timer, then waits until the host has time: on a busy host one timer in
//! fifty came more than half a millisecond late, and one in a thousand where something ran
//! meanwhile. So something runs on each processor that has nothing else to do, at the lowest
//! priority (`SCHED_IDLE`, sched(7)): whatever else is to run takes its place at once.
//!
//! Where the kernel groups by session (`sched_autogroup_enabled`) that holds within the session
//! alone, and programs of other sessions wait for the end of its slice: up to 4 ms, in one
//! connection of five. So the process is put into a group that is idle as a whole (`cpu.idle`,
//! cgroups(7)), and where that cannot be had nothing is run.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::sys;

/// Where the kernel's groups for the processor are, by the versions of its interface, and what
/// /proc/self/cgroup calls them (cgroups(7)).
const GROUPS: [(&str, &str); 2] = [("/sys/fs/cgroup/cpu", "cpu"), ("/sys/fs/cgroup", "")];
/// What a group of ours is called, before the number of its process.
const NAME: &str = "warifu-awake-";
const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// Why processors are left as they are.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// Nobody else gets them.
    #[error("this is no virtual machine: its processors are its own")]
    NotVirtual,
    /// Others would wait for what keeps them awake.
    #[error(
        "no idle group of the scheduler could be made ({0}), without which other sessions would \
         wait for it: run as root on Linux 5.15 or later, or set \
         kernel.sched_autogroup_enabled to 0"
    )]
    NotIdle(io::Error),
    /// A thread could not be pinned or started.
    #[error("keeping processors awake: {0}")]
    Failed(#[from] io::Error),
}

/// Processors that are kept awake until it is dropped.
#[derive(Debug)]
pub struct Awake {
    threads: Threads,
    /// After the threads, so that it has nothing to do when its process leaves it.
    _group: Option<IdleGroup>,
}

impl Awake {
    /// Keeps awake those that this process may use, if this is a virtual machine.
    ///
    /// # Errors
    /// Why they are not.
    pub fn begin() -> Result<Awake, NotKept> {
        if !is_virtual() {
            return Err(NotKept::NotVirtual);
        }
        let group = match IdleGroup::enter() {
            Ok(group) => Some(group),
            Err(error) if is_grouped_by_session() => return Err(NotKept::NotIdle(error)),
            Err(_) => None,
        };
        Ok(Awake { threads: Threads::begin()?, _group: group })
    }

    /// Their numbers.
    pub fn processors(&self) -> &[usize] {
        &self.threads.processors
    }
}

/// A thread for each processor that this process may use, until it is dropped.
#[derive(Debug)]
struct Threads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    processors: Vec<usize>,
}

impl Threads {
    fn begin() -> io::Result<Threads> {
        let usable = sched_getaffinity(None)?;
        let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&at| usable.is_set(at)).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let mut begun = Threads { stop, threads: Vec::new(), processors };
        for &processor in &begun.processors {
            let stop = begun.stop.clone();
            let (tell, told) = std::sync::mpsc::channel();
            let thread = std::thread::Builder::new().name("awake".into()).spawn(move || {
                let ready = lowest_on(processor);
                let failed = ready.is_err();
                let _ = tell.send(ready);
                while !failed && !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })?;
            begun.threads.push(thread);
            told.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
        }
        Ok(begun)
    }
}

impl Drop for Threads {
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

/// A group of the scheduler that runs only where no other does, with this process in it; removed
/// when dropped.
#[derive(Debug)]
struct IdleGroup {
    group: PathBuf,
    /// The group that this process came from.
    home: PathBuf,
}

impl IdleGroup {
    fn enter() -> io::Result<IdleGroup> {
        let mut refused = io::Error::from(io::ErrorKind::NotFound);
        let memberships = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        for (groups, name) in GROUPS {
            let groups = Path::new(groups);
            remove_left(groups);
            let home = home(groups, name, &memberships);
            let group = groups.join(format!("{NAME}{}", std::process::id()));
            match fs::create_dir(&group).and_then(|()| enter_idle(&group)) {
                Ok(()) => return Ok(IdleGroup { group, home }),
                Err(error) => refused = error,
            }
            let _ = fs::remove_dir(&group);
        }
        Err(refused)
    }
}

impl Drop for IdleGroup {
    fn drop(&mut self) {
        if move_into(&self.home).is_err()
            && let Some(groups) = self.group.parent()
        {
            let _ = move_into(groups);
        }
        let _ = fs::remove_dir(&self.group);
    }
}

/// The group that this process is in, by the lines of /proc/self/cgroup; the one of all where it
/// cannot be seen from here, as in a container.
fn home(groups: &Path, name: &str, memberships: &str) -> PathBuf {
    let path_of = |line: &'_ str| {
        let (names, path) = line.split_once(':')?.1.split_once(':')?;
        names.split(',').any(|other| other == name).then(|| path.to_owned())
    };
    let path = memberships.lines().find_map(path_of).unwrap_or_default();
    let path = Path::new(path.trim_start_matches('/'));
    let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
    let home = groups.join(path);
    if is_below && home.is_dir() { home } else { groups.to_owned() }
}

/// Makes a group idle and moves this process into it.
fn enter_idle(group: &Path) -> io::Result<()> {
    write_existing(&group.join("cpu.idle"), "1")?;
    move_into(group)
}

fn move_into(group: &Path) -> io::Result<()> {
    write_existing(&group.join("cgroup.procs"), &std::process::id().to_string())
}

/// A file of the kernel's is there, or this is none of its folders.
fn write_existing(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// Removes groups of programs that were killed. One that still has a program in it stays, and so
/// does one whose program may be about to enter it.
fn remove_left(groups: &Path) {
    let is_left = |name: &str| {
        let process = name.strip_prefix(NAME).and_then(|number| number.parse::<u32>().ok());
        // This one has made none yet.
        process.is_some_and(|id| {
            id == std::process::id() || !Path::new(&format!("/proc/{id}")).exists()
        })
    };
    for entry in fs::read_dir(groups).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_left) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Whether priorities count within a session alone.
fn is_grouped_by_session() -> bool {
    // Without the file the kernel has no such groups.
    fs::read_to_string(AUTOGROUP).is_ok_and(|text| text.trim() != "0")
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
        let awake = Threads::begin().unwrap();
        assert_eq!(awake.processors.len(), usable as usize);
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

    #[test]
    fn a_group_is_made_idle_before_this_process_is_in_it() {
        let group = std::env::temp_dir().join(format!("warifu-group-{}", std::process::id()));
        fs::create_dir(&group).unwrap();
        let read = |name: &str| fs::read_to_string(group.join(name)).unwrap();
        // A folder that is none of the kernel's is left as it is.
        assert_eq!(enter_idle(&group).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read_dir(&group).unwrap().count(), 0);
        // A kernel before 5.15 has groups that cannot be idle.
        fs::write(group.join("cgroup.procs"), "").unwrap();
        assert!(enter_idle(&group).is_err());
        assert_eq!(read("cgroup.procs"), "");
        fs::write(group.join("cpu.idle"), "").unwrap();
        enter_idle(&group).unwrap();
        assert_eq!(read("cpu.idle"), "1");
        assert_eq!(read("cgroup.procs"), std::process::id().to_string());
        fs::remove_dir_all(group).unwrap();
    }

    #[test]
    fn a_process_goes_back_to_where_it_came_from() {
        let groups = std::env::temp_dir().join(format!("warifu-home-{}", std::process::id()));
        fs::create_dir_all(groups.join("user/session")).unwrap();
        let first = "3:cpuset:/\n2:cpuacct,cpu:/user\n0::/user/session\n";
        assert_eq!(home(&groups, "cpu", first), groups.join("user"));
        assert_eq!(home(&groups, "", first), groups.join("user/session"));
        for elsewhere in ["", "0::/\n", "0::/hidden\n", "0::/../..\n", "0::/user/../..\n"] {
            assert_eq!(home(&groups, "", elsewhere), groups, "{elsewhere}");
        }
        let group = IdleGroup { group: groups.join("idle"), home: groups.join("user") };
        for name in ["cgroup.procs", "user/cgroup.procs"] {
            fs::write(groups.join(name), "").unwrap();
        }
        fs::create_dir(&group.group).unwrap();
        drop(group);
        let read = |name: &str| fs::read_to_string(groups.join(name)).unwrap();
        assert_eq!(read("user/cgroup.procs"), std::process::id().to_string());
        assert!(read("cgroup.procs").is_empty() && !groups.join("idle").exists());
        fs::remove_dir_all(groups).unwrap();
    }

    #[test]
    fn groups_that_were_left_are_removed_and_others_stay() {
        let groups = std::env::temp_dir().join(format!("warifu-groups-{}", std::process::id()));
        // No process has a number above PID_MAX_LIMIT (Linux include/linux/threads.h), and process
        // 1 is always there.
        let own = format!("warifu-awake-{}", std::process::id());
        let [left, held] = ["warifu-awake-4194305", "warifu-awake-4194306"];
        let held_by = format!("{held}/program");
        for name in [left, &held_by, "warifu-awake-1", &own, "other"] {
            fs::create_dir_all(groups.join(name)).unwrap();
        }
        remove_left(&groups);
        let exists = |name: &str| groups.join(name).exists();
        assert!(!exists(left) && !exists(&own));
        assert!(exists(held) && exists("warifu-awake-1") && exists("other"));
        fs::remove_dir_all(&groups).unwrap();
        remove_left(&groups);
    }
}
