// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Links the plugin so that it stays loaded: Cyclone unloads it while its own threads still run,
//! whose thread-local values are ours to drop. And so that its own functions are those in its
//! tables, whatever else of their names a program has loaded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
