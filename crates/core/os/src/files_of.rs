// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files as the user for whom root works: root that writes in a user's folder follows the links
//! that the user puts there.

use std::io;

/// Whose files the calling thread reads and writes (setfsuid(2)), and every thread that it starts.
/// The capabilities over files go with root's and come back with them (capabilities(7)); a program
/// that is started has root's files again (execve(2)).
///
/// # Errors
/// When the kernel keeps another user: without root.
pub fn become_files_of(user: u32, group: u32) -> io::Result<()> {
    let (Ok(to_user), Ok(to_group)) = (i32::try_from(user), i32::try_from(group)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // SAFETY: both change the credentials of this thread alone.
    unsafe {
        libc::setfsgid(group);
        libc::setfsuid(user);
    }
    if files_of() == (to_user, to_group) {
        return Ok(());
    }
    Err(io::ErrorKind::PermissionDenied.into())
}

/// Root's files until it is dropped, on this thread.
#[derive(Debug)]
pub struct RootsFiles {
    before: (i32, i32),
}

impl RootsFiles {
    /// From now on.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn take() -> io::Result<RootsFiles> {
        let before = files_of();
        // Without root there is nothing to take, and nothing was given up.
        if rustix::process::geteuid().is_root() {
            become_files_of(0, 0)?;
        }
        Ok(RootsFiles { before })
    }
}

impl Drop for RootsFiles {
    fn drop(&mut self) {
        if files_of() == self.before {
            return;
        }
        let (user, group) = self.before;
        let given = become_files_of(user.unsigned_abs(), group.unsigned_abs());
        // To go on would be to write as root where a user's word counts.
        if given.is_err() {
            std::process::abort();
        }
    }
}

/// The user and the group: each call returns the one before, and no number names nobody.
fn files_of() -> (i32, i32) {
    // SAFETY: the number is nobody's, so that nothing is changed.
    unsafe { (libc::setfsuid(u32::MAX), libc::setfsgid(u32::MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_user_who_is_not_ours() {
        let own = files_of();
        let is_root = rustix::process::geteuid().is_root();
        // A thread of its own: its credentials end with it.
        let seen = std::thread::spawn(move || {
            let changed = become_files_of(20_000, 20_001);
            if !is_root {
                assert!(changed.is_err());
                return own;
            }
            changed.unwrap();
            assert_eq!(files_of(), (20_000, 20_001));
            let inside = RootsFiles::take().unwrap();
            assert_eq!(files_of(), (0, 0));
            drop(inside);
            assert_eq!(std::thread::spawn(files_of).join().unwrap(), (20_000, 20_001));
            files_of()
        });
        assert!([own, (20_000, 20_001)].contains(&seen.join().unwrap()));
        assert_eq!(files_of(), own, "another thread's files");
    }
}
