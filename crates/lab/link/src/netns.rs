// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Named network namespaces: entering them, and making ones that are gone afterwards.

use crate::error::LinkError;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

/// Where `ip netns` keeps namespaces (ip-netns(8)).
const NAMESPACES: &str = "/var/run/netns";

/// Runs `work` in the named namespace, on a thread of its own, so that the caller stays where it
/// is.
///
/// A descriptor that `work` opens (a socket, a TUN device) belongs to the namespace for good and
/// may be used from any thread.
///
/// # Errors
/// The namespace is missing, or may not be entered; else what `work` returns.
pub fn enter<T: Send>(
    name: &str,
    work: impl FnOnce() -> Result<T, LinkError> + Send,
) -> Result<T, LinkError> {
    let namespace =
        File::open(format!("{NAMESPACES}/{name}")).map_err(|error| match error.kind() {
            ErrorKind::NotFound => LinkError::NamespaceMissing { name: name.to_owned() },
            _ => LinkError::os(format!("opening network namespace {name:?}"), error),
        })?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| {
                    LinkError::os(format!("entering network namespace {name:?}"), error)
                })?;
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs `ip` on a batch of commands in a namespace.
///
/// # Errors
/// `ip` is missing or refuses a line.
pub fn ip_batch(namespace: &str, lines: &str) -> Result<(), LinkError> {
    let mut child = Command::new("ip")
        .args(["-n", namespace, "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(ip_missing)?;
    if let Some(mut stdin) = child.stdin.take() {
        // Should `ip` give up before it has read all, its message on stderr says more than the
        // broken pipe would.
        let _ = stdin.write_all(lines.as_bytes());
    }
    let output =
        child.wait_with_output().map_err(|error| LinkError::os("waiting for `ip`", error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(LinkError::ToolFailed {
        command: format!("ip -n {namespace} -batch: {}", lines.trim_end().replace('\n', "; ")),
        message: String::from_utf8_lossy(&output.stderr).trim_end().replace('\n', "; "),
    })
}

/// A network namespace that is deleted when dropped, also while a panic unwinds.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes the namespace, with its loopback device up.
    ///
    /// # Errors
    /// Without rights, without `ip`, or if the name is taken.
    pub fn create(name: &str) -> Result<Namespace, LinkError> {
        let output =
            Command::new("ip").args(["netns", "add", name]).output().map_err(ip_missing)?;
        if !output.status.success() {
            return Err(LinkError::ToolFailed {
                command: format!("ip netns add {name}"),
                message: format!(
                    "{} (it needs root and an unused name)",
                    String::from_utf8_lossy(&output.stderr).trim_end()
                ),
            });
        }
        let namespace = Namespace { name: name.to_owned() };
        ip_batch(name, "link set dev lo up\n")?;
        Ok(namespace)
    }

    /// Takes over a namespace that exists, to delete it when dropped.
    #[must_use]
    pub fn adopt(name: &str) -> Namespace {
        Namespace { name: name.to_owned() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nothing can be done here about a failure; `ip` has then written why to stderr.
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

fn ip_missing(source: std::io::Error) -> LinkError {
    LinkError::ToolMissing { program: "ip", package: "iproute2", source }
}
