// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two namespaces for one test, gone when it ends, and sockets in them.

use libtest_mimic::{Arguments, Trial};
use std::net::UdpSocket;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use warifu_link::netns::{self, Namespace};
use warifu_link::{Config, LinkConfig, LinkError};

/// How long a test waits for what must come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One test for `run_tests`, by the name of its function.
macro_rules! trial {
    ($test:ident, needs_root: $needs_root:literal) => {
        common::make_trial(stringify!($test), $test, $needs_root)
    };
}
pub(crate) use trial;

/// A test; one that makes namespaces and TUN devices is shown as ignored to another user than root,
/// not as passed.
pub fn make_trial(name: &str, test: fn(), needs_root: bool) -> Trial {
    let trial = Trial::test(name, move || {
        test();
        Ok(())
    });
    if needs_root && !rustix::process::geteuid().is_root() {
        return trial.with_kind("needs root").with_ignored_flag(true);
    }
    trial
}

/// Runs them as cargo's own harness does, with its arguments.
pub fn run_tests(tests: Vec<Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

/// Two fresh namespaces.
pub struct Ends {
    pub a: Namespace,
    pub b: Namespace,
}

impl Ends {
    /// Makes them, which needs root.
    pub fn new() -> Ends {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let make = |end| {
            Namespace::create(&format!("warifu-test-{}-{number}-{end}", std::process::id()))
                .unwrap()
        };
        Ends { a: make("a"), b: make("b") }
    }

    pub fn config(&self, link: LinkConfig) -> Config {
        Config { link, seed: 7, ..Config::between(self.a.name(), self.b.name()) }
    }

    /// A UDP socket at end A and one at end B, each connected to the other.
    pub fn udp(&self) -> (UdpSocket, UdpSocket) {
        let open = |end: &Namespace, address: &str| {
            netns::enter(end.name(), || Ok(UdpSocket::bind((address, 0)).unwrap())).unwrap()
        };
        let (a, b) = (open(&self.a, "10.9.0.1"), open(&self.b, "10.9.0.2"));
        a.connect(b.local_addr().unwrap()).unwrap();
        b.connect(a.local_addr().unwrap()).unwrap();
        for socket in [&a, &b] {
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        (a, b)
    }

    /// The devices of an end, by name.
    pub fn devices(end: &Namespace) -> Vec<String> {
        let table = netns::enter(end.name(), || {
            std::fs::read_to_string("/proc/thread-self/net/dev")
                .map_err(|source| LinkError::Os { doing: "reading".to_owned(), source })
        });
        let table = table.unwrap();
        let names = table.lines().filter_map(|line| line.split_once(':'));
        names.map(|(name, _)| name.trim().to_owned()).collect()
    }
}

/// Looks again and again until something is so; `what` says what did not happen.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not happen within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends `count` numbered packets of `bytes` at once; the numbers of the `expected` first to
/// arrive, and of any that follow shortly and should not.
pub fn numbered(from: &UdpSocket, to: &UdpSocket, count: u32, expected: usize) -> Vec<u32> {
    for number in 0..count {
        from.send(&number.to_le_bytes()).unwrap();
    }
    let mut received = Vec::new();
    let mut packet = [0_u8; 4];
    while received.len() < expected {
        assert_eq!(to.recv(&mut packet).expect("a packet that must come does not"), 4);
        received.push(u32::from_le_bytes(packet));
    }
    to.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    while to.recv(&mut packet).is_ok() {
        received.push(u32::from_le_bytes(packet));
    }
    to.set_read_timeout(Some(PATIENCE)).unwrap();
    received
}
