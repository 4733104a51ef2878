// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way to `warifu-agent`, which holds cards across processes: its messages and its client.

mod client;
pub mod message;

use std::env;
use std::path::{Path, PathBuf};

pub use client::{AgentClient, AgentToken};

/// Where the agent listens unless it is told otherwise.
#[must_use]
pub fn default_socket() -> PathBuf {
    let folder = env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    Path::new(&folder.unwrap_or_else(|| "/run".into())).join("warifu-agent.sock")
}
