// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The environment, as a library may trust it.

use std::env;

/// Whether this process has more rights than whoever started it (AT_SECURE, getauxval(3)): a setuid
/// or setgid program, or one with file capabilities. Its environment is then the word of a user
/// without those rights.
#[must_use]
pub fn is_privileged_start() -> bool {
    // SAFETY: it only reads the auxiliary vector of this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// A variable of the environment, for code that other programs load; None if it is missing, empty
/// or not UTF-8, and always None where [`is_privileged_start`], as of secure_getenv(3).
#[must_use]
pub fn secure_variable(name: &str) -> Option<String> {
    if is_privileged_start() {
        return None;
    }
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_program_sees_its_environment() {
        assert!(!is_privileged_start());
        assert_eq!(secure_variable("PATH"), env::var("PATH").ok());
        assert_eq!(secure_variable("WARIFU_NO_SUCH_VARIABLE"), None);
    }
}
