// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong outside the configuration, each with what to do about it.

use crate::config::ConfigError;

/// Why a link could not be set up, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The configuration cannot run.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The kernel offers no TUN devices here.
    #[error(
        "/dev/net/tun is missing: load the module with `modprobe tun`, or give the container the \
         device (docker: --device /dev/net/tun)"
    )]
    NoTun,
    /// Rights are missing.
    #[error(
        "{doing} is not permitted: run as root, or with CAP_NET_ADMIN and CAP_SYS_ADMIN (sudo, or \
         docker: --privileged)"
    )]
    NotPermitted {
        /// What was tried.
        doing: String,
    },
    /// A named namespace does not exist.
    #[error(
        "network namespace {name:?} does not exist: make it with `ip netns add {name}`; `ip netns \
         list` shows those there are"
    )]
    NamespaceMissing {
        /// The namespace.
        name: String,
    },
    /// A device of the wanted name exists.
    #[error(
        "device {device:?} exists already in namespace {namespace:?}: another link may be up; stop \
         it, `ip -n {namespace} link del {device}`, or choose another {key}"
    )]
    DeviceInUse {
        /// The device.
        device: String,
        /// Where it is.
        namespace: String,
        /// The setting that names it.
        key: &'static str,
    },
    /// A tool is not installed.
    #[error("`{program}` could not be started ({source}): install it with `apt install {package}`")]
    ToolMissing {
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
        /// Why it could not be started.
        source: std::io::Error,
    },
    /// A tool refused.
    #[error("`{command}` failed: {message}")]
    ToolFailed {
        /// The command with its arguments, or the batch that it read.
        command: String,
        /// What it wrote to stderr, and what to do.
        message: String,
    },
    /// The kernel has no such congestion control.
    #[error(
        "congestion_control is {wanted:?}, and this kernel offers {available}: choose one of \
         these, or `modprobe tcp_{wanted}`"
    )]
    CongestionControl {
        /// What was asked for.
        wanted: String,
        /// What there is.
        available: String,
    },
    /// A system call failed in a way that has no better name.
    #[error("{doing}: {source}")]
    Os {
        /// What was tried.
        doing: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// The forwarding thread is gone.
    #[error("the link has stopped already")]
    Stopped,
}

impl LinkError {
    /// Wraps a failed system call, setting missing rights apart.
    pub(crate) fn os(doing: impl Into<String>, error: impl Into<std::io::Error>) -> LinkError {
        let source = error.into();
        match source.kind() {
            std::io::ErrorKind::PermissionDenied => LinkError::NotPermitted { doing: doing.into() },
            _ => LinkError::Os { doing: doing.into(), source },
        }
    }
}
