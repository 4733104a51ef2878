// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Instructions as people read them.
