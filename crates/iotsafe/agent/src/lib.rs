// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `warifu-agent` is to IoT SAFE cards what ssh-agent is to SSH keys: one process keeps the card's
//! channel, its login, what it has read, and tokens signed ahead, for programs that live shortly.
//!
//! - [`card`]: one card, its turns, retries, login, work ahead.
//! - [`jwt`]: JSON Web Tokens, kept and renewed.
//! - [`server`]: the socket, callers and their rights.
//! - [`config`], [`pin`]: what it is told, and where PINs come from.
//! - [`clock`]: time as an argument; [`tell`]: what it says on stderr.
#![warn(clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod card;
pub mod clock;
pub mod config;
mod http;
pub mod jwt;
pub mod metrics;
pub mod pin;
pub mod retry;
pub mod rights;
pub mod server;
pub mod tell;
pub mod turns;
