// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Observation schema, the manifest, Parquet.
