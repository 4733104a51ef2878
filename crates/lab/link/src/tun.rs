// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One end of the link: a TUN device in a namespace, with its address, route and drop counter.

use crate::config::Config;
use crate::error::LinkError;
use crate::netns;
use crate::random::Direction;
use crate::stamps::Stamps;
use crate::sys;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// Packets that the device holds until they are read; a burst of the largest initial window fits
/// several times over. Linux drops what exceeds it (drivers/net/tun.c, `tun_net_xmit`), which the
/// report counts as `device_dropped`.
const DEVICE_QUEUE_PACKETS: u32 = 8_192;

/// A TUN device that vanishes when dropped, however the process ends.
#[derive(Debug)]
pub struct Tun {
    device: OwnedFd,
    name: String,
    /// The namespace's /proc/net/dev, open since the thread that was in the namespace.
    statistics: File,
    /// When the kernel handed each packet to the device; `None` where it may not be asked.
    pub stamps: Option<Stamps>,
    /// What could not be set but does not stop the link.
    pub warnings: Vec<String>,
}

impl Tun {
    /// Makes the device from which packets in `direction` are read, and brings it up.
    ///
    /// # Errors
    /// No TUN support, no rights, no such namespace, a name in use, or settings that the kernel
    /// refuses.
    pub fn open(config: &Config, direction: Direction) -> Result<Tun, LinkError> {
        let end = End::of(config, direction);
        let mut tun = netns::enter(end.namespace, || end.create())?;
        end.configure(config)?;
        tun.warnings.retain(|warning| !warning.is_empty());
        Ok(tun)
    }

    /// A socket that keeps packets apart in the place of a device.
    #[cfg(test)]
    pub fn of_socket(device: OwnedFd) -> Tun {
        let statistics = File::open("/dev/null").unwrap();
        Tun { device, name: String::new(), statistics, stamps: None, warnings: Vec::new() }
    }

    /// The descriptor: each read and each write is one IP packet.
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    /// Packets that the kernel dropped before this process could read them, since the device was
    /// made; `None` if it cannot be told.
    #[must_use]
    pub fn dropped_before_reading(&self) -> Option<u64> {
        let mut text = [0_u8; 4096];
        let length = self.statistics.read_at(&mut text, 0).ok()?;
        transmit_drops(std::str::from_utf8(&text[..length]).ok()?, &self.name)
    }
}

/// The column "drop" under "Transmit" of a device in /proc/net/dev (proc_net_dev(5)): the twelfth
/// number of its line.
fn transmit_drops(table: &str, device: &str) -> Option<u64> {
    let numbers =
        table.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'))?;
    numbers.split_ascii_whitespace().nth(11)?.parse().ok()
}

/// What the configuration says of one end.
struct End<'a> {
    namespace: &'a str,
    device: &'a str,
    device_key: &'static str,
    address: Ipv4Addr,
}

impl End<'_> {
    fn of(config: &Config, direction: Direction) -> End<'_> {
        match direction {
            Direction::AToB => End {
                namespace: &config.name_a,
                device: &config.device_a,
                device_key: "device_a",
                address: config.address_a,
            },
            Direction::BToA => End {
                namespace: &config.name_b,
                device: &config.device_b,
                device_key: "device_b",
                address: config.address_b,
            },
        }
    }

    /// Runs inside the namespace: a TUN device belongs to the namespace in which it is made.
    fn create(&self) -> Result<Tun, LinkError> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let device =
            rustix::fs::open("/dev/net/tun", flags, Mode::empty()).map_err(|error| match error
                .kind()
            {
                ErrorKind::NotFound => LinkError::NoTun,
                _ if error == rustix::io::Errno::NODEV || error == rustix::io::Errno::NXIO => {
                    LinkError::NoTun
                }
                _ => LinkError::os("opening /dev/net/tun", error),
            })?;
        sys::tun_set_interface(device.as_fd(), self.device).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::EBUSY | libc::EINVAL | libc::EEXIST) => LinkError::DeviceInUse {
                    device: self.device.to_owned(),
                    namespace: self.namespace.to_owned(),
                    key: self.device_key,
                },
                _ => LinkError::os(
                    format!(
                        "making TUN device {:?} in namespace {:?}",
                        self.device, self.namespace
                    ),
                    error,
                ),
            }
        })?;
        let statistics = File::open("/proc/thread-self/net/dev")
            .map_err(|error| LinkError::os("opening /proc/thread-self/net/dev", error))?;
        let (stamps, unstamped) = match Stamps::attach(device.as_fd()) {
            Ok(stamps) => (Some(stamps), String::new()),
            Err(error) => (
                None,
                format!(
                    "the kernel refused to stamp packets ({error}), so they are stamped when read, \
                     some tens of microseconds late on an idle machine: run as root or with \
                     CAP_BPF, on Linux 5.12 or newer"
                ),
            ),
        };
        let warnings = vec![
            unstamped,
            // Router solicitations and multicast reports would draw random numbers at moments that
            // no seed replays.
            self.set(&format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", self.device), "1"),
            // Else a connection begins with what an earlier one learnt of the path (Linux
            // net/ipv4/tcp_metrics.c).
            self.set("/proc/sys/net/ipv4/tcp_no_metrics_save", "1"),
        ];
        Ok(Tun { device, name: self.device.to_owned(), statistics, stamps, warnings })
    }

    /// Sets a kernel parameter of this namespace; returns a warning if that fails where the
    /// parameter exists.
    fn set(&self, path: &str, value: &str) -> String {
        match std::fs::write(path, value) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                format!(
                    "{path} in namespace {:?} could not be set to {value} ({error}): mount \
                     /proc/sys writable",
                    self.namespace
                )
            }
            _ => String::new(),
        }
    }

    fn configure(&self, config: &Config) -> Result<(), LinkError> {
        let End { namespace, device, address, .. } = self;
        let mut lines = format!(
            "link set dev {device} mtu {} txqueuelen {DEVICE_QUEUE_PACKETS}\n\
             address add {address}/24 dev {device}\nlink set dev {device} up\n",
            config.mtu
        );
        if config.congestion_control.is_some() || config.initcwnd.is_some() {
            let [a, b, c, _] = address.octets();
            lines += &format!(
                "route replace {a}.{b}.{c}.0/24 dev {device} src {address} proto kernel scope link"
            );
            if let Some(name) = &config.congestion_control {
                lines += &format!(" congctl {name}");
            }
            if let Some(segments) = config.initcwnd {
                lines += &format!(" initcwnd {segments}");
            }
            lines += "\n";
        }
        netns::ip_batch(namespace, &lines)
            .map_err(|error| explain_refusal(error, config.congestion_control.as_deref()))
    }
}

/// The kernel answers an algorithm that it does not know, and has no module for, with a bare
/// "Invalid argument".
fn explain_refusal(error: LinkError, congestion_control: Option<&str>) -> LinkError {
    let Some(wanted) = congestion_control else { return error };
    let Ok(available) =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
    else {
        return error;
    };
    if available.split_ascii_whitespace().any(|name| name == wanted) {
        return error;
    }
    LinkError::CongestionControl {
        wanted: wanted.to_owned(),
        available: available.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmit_drops_of_one_device() {
        let table = "Inter-|   Receive      |  Transmit\n face |bytes packets errs|bytes packets\n\
            tun01: 1 2 3 4 5 6 7 8 9 10 11 99 13 14 15 16\n  \
            tun0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        assert_eq!(transmit_drops(table, "tun0"), Some(12));
        assert_eq!(transmit_drops(table, "tun01"), Some(99));
        assert_eq!(transmit_drops(table, "tun"), None);
        assert_eq!(transmit_drops("tun0: 1 2", "tun0"), None);
    }
}
