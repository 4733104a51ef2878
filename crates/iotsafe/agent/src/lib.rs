// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `warifu-agent` is to IoT SAFE cards what ssh-agent is to SSH keys: one process keeps the card's
//! channel, its login, what it has read, and tokens signed ahead, for programs that live shortly.
//!
//! - [`card`]: one card, its turns, retries, login, work ahead.
//! - [`jwt`]: JSON Web Tokens, kept and renewed.
//! - [`server`]: the socket, callers and their rights.
//! - [`config`], [`pin`]: what it is told, and where PINs come from.
#![warn(clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

use warifu_os::Log;

pub mod card;
pub mod config;
mod http;
pub mod jwt;
pub mod metrics;
pub mod pin;
pub mod retry;
pub mod rights;
pub mod server;

/// What the agent tells the person who started it.
pub const LOG: Log = Log::new("warifu-agent");
