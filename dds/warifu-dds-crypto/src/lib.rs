// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A cryptographic plugin of DDS Security 1.1 for Cyclone DDS: AES-GCM and GMAC on the standard
//! wire format, and other AEADs, as an experiment, under kinds and class ids of their own.
//!
//! [`factory`] makes keys, [`exchange`] gives them to peers, [`transform`] uses them; all three are
//! parts of [`factory::Factory`], which knows no C. [`shell`] is what Cyclone calls.

pub mod algorithm;
pub mod cipher;
pub mod entity;
pub mod error;
pub mod exchange;
pub mod factory;
pub mod fork;
pub mod keys;
pub mod protection;
pub mod random;
pub mod session;
pub mod settings;
pub mod shell;
pub mod transform;
pub mod wire;
