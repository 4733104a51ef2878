// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files as the user for whom root works: root that writes in a user's folder follows the links
//! that the user puts there.

use std::fs::File;
use std::io;
use std::marker::PhantomData;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// What the kernel's own files ask for in the place of their owner: other processes' in /proc
/// (proc(5), ptrace(2)), and its log.
const PEEKING: CapabilitySet = CapabilitySet::SYS_PTRACE.union(CapabilitySet::SYSLOG);

/// Whose files the calling thread reads and writes (setfsuid(2)), and every thread that it starts.
/// The capabilities over files go with root's and come back with them (capabilities(7)), and here
/// also those that open the processes of others in /proc; a program that is started has root's
/// files again (execve(2)). Settings of the kernel, /proc/sys, remain root's: what a user has named
/// is not to be looked for in /proc.
///
/// # Errors
/// When the kernel keeps another user: without root.
pub fn set_fs_user(user: u32, group: u32) -> io::Result<()> {
    let (Ok(to_user), Ok(to_group)) = (i32::try_from(user), i32::try_from(group)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // SAFETY: both change the credentials of this thread alone.
    unsafe {
        libc::setfsgid(group);
        libc::setfsuid(user);
    }
    if fs_user() != (to_user, to_group) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut sets = capabilities(None)?;
    let peeking = match user {
        0 => sets.permitted & PEEKING,
        _ => CapabilitySet::empty(),
    };
    let effective = (sets.effective - PEEKING) | peeking;
    if effective != sets.effective {
        sets.effective = effective;
        set_capabilities(None, sets)?;
    }
    Ok(())
}

/// Root's files until it is dropped, on this thread, which it does not leave.
#[derive(Debug)]
pub struct RootFsGuard {
    before: (i32, i32),
    not_send: PhantomData<*const ()>,
}

impl RootFsGuard {
    /// From now on.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn take() -> io::Result<RootFsGuard> {
        let before = fs_user();
        // Without root there is nothing to take, and nothing was given up.
        if rustix::process::geteuid().is_root() {
            set_fs_user(0, 0)?;
        }
        Ok(RootFsGuard { before, not_send: PhantomData })
    }
}

impl Drop for RootFsGuard {
    fn drop(&mut self) {
        if fs_user() == self.before {
            return;
        }
        let (user, group) = self.before;
        let given = set_fs_user(user.unsigned_abs(), group.unsigned_abs());
        // To go on would be to write as root where a user's word counts.
        if given.is_err() {
            std::process::abort();
        }
    }
}

/// Refuses a file of /proc: the kernel shows root there what it shows no one else, whosever files
/// the thread reads.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`], and the kernel's.
pub fn refuse_proc(file: &File) -> io::Result<()> {
    // linux/magic.h: PROC_SUPER_MAGIC.
    const PROC: i64 = 0x9fa0;
    #[allow(clippy::useless_conversion)] // its type differs between architectures
    match i64::from(rustix::fs::fstatfs(file)?.f_type) {
        PROC => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "a file of /proc: name a copy of it",
        )),
        _ => Ok(()),
    }
}

/// Whose files the calling thread reads and writes: the user and the group.
#[must_use]
pub fn fs_user() -> (i32, i32) {
    // Each returns what was before.
    // SAFETY: the number is nobody's, so that nothing is changed.
    unsafe { (libc::setfsuid(u32::MAX), libc::setfsgid(u32::MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_of_proc_is_refused() {
        let refused = refuse_proc(&File::open("/proc/self/status").unwrap()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        refuse_proc(&File::open(std::env::current_exe().unwrap()).unwrap()).unwrap();
    }

    #[test]
    fn files_of_a_user_who_is_not_ours() {
        let own = fs_user();
        let is_root = rustix::process::geteuid().is_root();
        // A thread of its own: its credentials end with it.
        let seen = std::thread::spawn(move || {
            let changed = set_fs_user(20_000, 20_001);
            if !is_root {
                assert!(changed.is_err());
                return own;
            }
            changed.unwrap();
            assert_eq!(fs_user(), (20_000, 20_001));
            // Root's, by a link that the owner of the process's folder may follow, and no other.
            let other = format!("/proc/{}/cwd", std::os::unix::process::parent_id());
            assert!(std::fs::read_dir(&other).is_err());
            let inside = RootFsGuard::take().unwrap();
            assert_eq!(fs_user(), (0, 0));
            assert!(std::fs::read_dir(&other).is_ok());
            drop(inside);
            assert!(std::fs::read_dir(&other).is_err());
            assert_eq!(std::thread::spawn(fs_user).join().unwrap(), (20_000, 20_001));
            fs_user()
        });
        assert!([own, (20_000, 20_001)].contains(&seen.join().unwrap()));
        assert_eq!(fs_user(), own, "another thread's files");
    }
}
