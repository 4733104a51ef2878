// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The system calls for which there is no safe wrapper: all the `unsafe` of this crate, and nothing
//! else.

use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes an open `/dev/net/tun` the TUN device `name`, bare IP packets without a header, refusing
/// one that exists (`IFF_TUN_EXCL`).
///
/// # Errors
/// The kernel's: `EBUSY` for a name in use, `EPERM` without CAP_NET_ADMIN; `EINVAL` also for a name
/// of over 15 bytes.
pub fn tun_set_interface(tun: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // Linux include/uapi/linux/if_tun.h; libc has the flag as a c_int that does not fit the c_short
    // of ifreq.
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
    // SAFETY: the descriptor is open for the length of the borrow, and TUNSETIFF reads and writes
    // one ifreq, which outlives the call.
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Puts the calling thread under SCHED_FIFO at `priority` (1 to 99); threads that it starts later
/// are not.
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

/// Puts the calling thread under SCHED_IDLE: it runs where nothing else does.
///
/// # Errors
/// The kernel's.
pub fn set_idle_policy() -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread, and the parameter is read only during the call.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameter) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// When the packet that was last received from a socket came into its network stack, on
/// CLOCK_REALTIME.
///
/// # Errors
/// The kernel's: `ENOENT` the first time, which makes it stamp packets from then on.
pub fn socket_stamp(socket: BorrowedFd<'_>) -> io::Result<libc::timespec> {
    // Linux include/uapi/asm-generic/sockios.h, SIOCGSTAMPNS_OLD, whose timespec is the C library's
    // where that has 64-bit times.
    const SIOCGSTAMPNS: libc::Ioctl = 0x8907;
    let mut stamp = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the descriptor is open for the length of the borrow, and the call writes one
    // timespec, which outlives it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSTAMPNS, &raw mut stamp) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(stamp) }
}

/// Makes a BPF array map with one value of `bytes`, which [`SharedWords`] can map into this
/// process.
///
/// # Errors
/// The kernel's: `EPERM` without CAP_BPF, `ENOSYS` without BPF.
pub fn bpf_shared_array(bytes: u32) -> io::Result<OwnedFd> {
    /// The first fields of `union bpf_attr` for BPF_MAP_CREATE (Linux include/uapi/linux/bpf.h).
    #[repr(C)]
    struct MapCreate {
        map_type: u32,
        key_size: u32,
        value_size: u32,
        max_entries: u32,
        map_flags: u32,
    }
    const BPF_MAP_CREATE: libc::c_long = 0;
    const BPF_MAP_TYPE_ARRAY: u32 = 2;
    const BPF_F_MMAPABLE: u32 = 1 << 10;
    let attributes = MapCreate {
        map_type: BPF_MAP_TYPE_ARRAY,
        key_size: 4,
        value_size: bytes,
        max_entries: 1,
        map_flags: BPF_F_MMAPABLE,
    };
    // SAFETY: the attributes hold no pointers.
    unsafe { bpf(BPF_MAP_CREATE, &attributes) }
}

/// Loads a BPF socket filter; each instruction is in the kernel's own encoding.
///
/// # Errors
/// The kernel's: `EPERM` without CAP_BPF, `ENOSYS` without BPF, `EINVAL` or `EACCES` for a program
/// that the verifier refuses.
pub fn bpf_socket_filter(instructions: &[u64]) -> io::Result<OwnedFd> {
    /// The first fields of `union bpf_attr` for BPF_PROG_LOAD (Linux include/uapi/linux/bpf.h).
    #[repr(C)]
    struct ProgramLoad {
        prog_type: u32,
        insn_cnt: u32,
        insns: u64,
        license: u64,
        log_level: u32,
        log_size: u32,
        log_buf: u64,
    }
    const BPF_PROG_LOAD: libc::c_long = 5;
    const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;
    let attributes = ProgramLoad {
        prog_type: BPF_PROG_TYPE_SOCKET_FILTER,
        insn_cnt: u32::try_from(instructions.len()).map_err(io::Error::other)?,
        insns: instructions.as_ptr() as u64,
        license: c"MIT".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log_buf: 0,
    };
    // SAFETY: the pointers are to `insn_cnt` instructions of 8 bytes and to a C string; both
    // outlive the call, which only reads them.
    unsafe { bpf(BPF_PROG_LOAD, &attributes) }
}

/// # Safety
/// `attributes` must be the kernel's for `command`, and its pointers valid as the command uses
/// them.
unsafe fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: by this function's contract; the kernel reads `size_of::<T>()` bytes and takes those
    // beyond for zeroes.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>())
    };
    let descriptor =
        i32::try_from(result).ok().filter(|&fd| fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: both commands return a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Runs a loaded BPF socket filter on every packet that the kernel hands to a TUN device. The
/// device keeps it.
///
/// # Errors
/// The kernel's: `EPERM` without CAP_NET_ADMIN, `ENOTTY` before Linux 4.16.
pub fn tun_set_filter(tun: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let descriptor: libc::c_int = program.as_raw_fd();
    // SAFETY: both descriptors are open for the length of the borrows, and TUNSETFILTEREBPF reads
    // one int.
    let result =
        unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETFILTEREBPF, &raw const descriptor) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Memory that the kernel writes and this process reads, in words of 64 bits.
#[derive(Debug)]
pub struct SharedWords {
    start: NonNull<c_void>,
    words: usize,
}

impl SharedWords {
    /// Maps the first `words` words of a map made by [`bpf_shared_array`].
    ///
    /// # Errors
    /// The kernel's: `EINVAL` for a map that is shorter.
    pub fn map(array: impl AsFd, words: usize) -> io::Result<SharedWords> {
        // SAFETY: the kernel chooses an address where nothing else is.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                words * 8,
                ProtFlags::READ,
                MapFlags::SHARED,
                array,
                0,
            )?
        };
        let start =
            NonNull::new(start).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(SharedWords { start, words })
    }

    /// The word at `index`; 0 beyond the end.
    pub fn load(&self, index: usize) -> u64 {
        if index >= self.words {
            return 0;
        }
        // SAFETY: within the mapping, which lives as long as `self`, is aligned to a page, and is
        // only ever accessed atomically here.
        unsafe { self.start.cast::<AtomicU64>().add(index).as_ref() }.load(Ordering::Acquire)
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives `load`. A failure would
        // leave it mapped, which is harmless.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.words * 8) };
    }
}

// SAFETY: a mapping belongs to the process, not to the thread that made it, and is read atomically.
unsafe impl Send for SharedWords {}

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
