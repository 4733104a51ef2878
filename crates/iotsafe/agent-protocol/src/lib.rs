// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The protocol of `warifu-agent`, the process that holds IoT SAFE cards for others.
//!
//! - [`message`]: requests and replies, and how they are framed.
//! - [`AgentClient`]: the client's end of the agent's socket; [`AgentToken`]: a card of the agent's
//!   as a [`Token`](warifu_iotsafe_client::Token).
//! - [`key_error`]: mistakes in configurations, in words of those who write them.
//! - [`Address`]: a card of this process or of an agent, as people write it.
//!
//! ```no_run
//! use std::time::{Duration, Instant};
//! use warifu_agent_protocol::Address;
//! use warifu_iotsafe_client::Options;
//!
//! let address: Address = "agent:/run/user/1000/warifu-agent.sock".parse()?;
//! let mut token = address.token(Options::default(), None);
//! let deadline = Instant::now() + Duration::from_secs(5);
//! for key in token.objects(deadline)?.private_keys {
//!     println!("{} {:02x?}", key.label, key.id);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod client;
mod key_error;
pub mod message;
mod token;

use std::path::{Path, PathBuf};

pub use address::{Address, AddressError};
pub use client::AgentClient;
pub use key_error::key_error;
pub use token::AgentToken;
use warifu_os::secure_variable;

/// Where the agent listens unless it is told otherwise.
#[must_use]
pub fn default_socket() -> PathBuf {
    let folder = secure_variable("XDG_RUNTIME_DIR").unwrap_or_else(|| "/run".to_owned());
    Path::new(&folder).join("warifu-agent.sock")
}

/// What to add to an error about a default socket without XDG_RUNTIME_DIR; empty with it.
#[must_use]
pub fn runtime_folder_hint() -> &'static str {
    match secure_variable("XDG_RUNTIME_DIR") {
        Some(_) => "",
        None => {
            " (XDG_RUNTIME_DIR is not set, so it is looked for in /run: set it to your own folder, \
             usually with: export XDG_RUNTIME_DIR=/run/user/$(id -u))"
        }
    }
}
