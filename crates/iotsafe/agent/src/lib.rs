// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `warifu-agent` is to IoT SAFE cards what ssh-agent is to SSH keys: one process keeps the card's
//! channel, its login, the data read from it, and signed tokens, for short-lived programs.
//!
//! - [`card`]: one card: turns, retries, login, work ahead.
//! - [`jwt`]: JSON Web Tokens, cached and renewed.
//! - [`server`]: the socket, callers and their rights.
//! - [`config`], [`pin`]: configuration, and the sources of PINs.
#![warn(clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

use warifu_os::Log;

pub mod card;
pub mod config;
pub mod http;
pub mod jwt;
pub mod metrics;
pub mod pin;
pub mod retry;
pub mod rights;
pub mod server;

/// The agent's messages on stderr.
pub const LOG: Log = Log::new("warifu-agent");
