// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls through the real function list: what works, and what each bad call returns.

#[macro_use]
mod bench;
mod bad_calls;
mod initialising;
mod panics;
mod templates;
mod work;
