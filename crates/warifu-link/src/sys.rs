// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The system calls for which there is no safe wrapper: all the `unsafe` of this crate, and nothing else.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Makes an open `/dev/net/tun` the TUN device `name`, bare IP packets without a header, refusing one that exists (`IFF_TUN_EXCL`).
///
/// # Errors
/// The kernel's: `EBUSY` for a name in use, `EPERM` without CAP_NET_ADMIN; `EINVAL` also for a name of over 15 bytes.
pub fn tun_set_interface(tun: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // Linux include/uapi/linux/if_tun.h; libc has the flag as a c_int that does not fit the c_short of ifreq.
    const IFF_TUN_EXCL: u16 = 0x8000;
    const FLAGS: u16 = libc::IFF_TUN as u16 | libc::IFF_NO_PI as u16 | IFF_TUN_EXCL;
    // SAFETY: ifreq is plain old data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = FLAGS as libc::c_short;
    // SAFETY: the descriptor is open for the length of the borrow, and TUNSETIFF reads and writes one ifreq, which outlives the call.
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Puts the calling thread under SCHED_FIFO at `priority` (1 to 99); threads that it starts later are not.
///
/// # Errors
/// The kernel's: `EPERM` without CAP_SYS_NICE or a sufficient RLIMIT_RTPRIO.
pub fn set_fifo_priority(priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 is the calling thread, and the parameter is read only during the call.
    let result = unsafe {
        libc::sched_setscheduler(
            0,
            libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
            &raw const parameter,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn what_is_no_tun_device_is_refused() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(tun_set_interface(null.as_fd(), "x").is_err());
        let too_long = tun_set_interface(null.as_fd(), "sixteen_letters_").unwrap_err();
        assert_eq!(too_long.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn an_impossible_priority_is_refused() {
        assert!(set_fifo_priority(1000).is_err());
    }
}
