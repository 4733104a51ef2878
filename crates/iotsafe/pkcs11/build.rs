// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Links the module so that it stays loaded: a program may unload it while a thread of ours still
//! hangs in a reader that does not answer. And so that its own functions are those in its list,
//! whatever else of their names a program has loaded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
