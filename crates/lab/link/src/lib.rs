// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An emulated link between two network namespaces, for kernels without `sch_netem` and for
//! measurements that must know how good their link was.
//!
//! One thread forwards IP packets between a TUN device in each namespace, with delay, jitter, rate,
//! a drop-tail queue and loss in each direction. It stamps every packet that it hands over, and its
//! [`Report`] says how late that was and whether the window may be used.
//!
//! The decisions ([`impairment`], [`queue`], [`loss`], [`jitter`], [`delay_line`]) read no clock
//! and hold no randomness; a seed replays. [`Link`] is the handle for use from code, [`run`] the
//! same driven by commands, as the program `warifu-link` does.
#![warn(clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod awake;
pub mod clock;
pub mod config;
pub mod delay_line;
mod error;
mod forward;
mod headers;
pub mod impairment;
pub mod jitter;
mod link;
pub mod loss;
pub mod netns;
pub mod packet_log;
mod pool;
pub mod queue;
pub mod random;
pub mod report;
mod stamps;
mod sys;
mod tun;

pub use config::{Command, Config, ConfigError, LinkConfig};
pub use error::LinkError;
pub use link::{Event, Link, run};
pub use report::Report;
