// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a PIN comes from: the terminal, a file, or systemd. Never from arguments or the
//! environment, which other users can read.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::OFlags;
use zeroize::Zeroizing;

use crate::card::HeldPin;

/// More than a PIN and a line about it.
const FILE_MAX_BYTES: usize = 1024;

/// The source of a PIN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinSource {
    /// `ask`: a prompt at the terminal.
    Ask,
    /// `file:/path`: its first line.
    File(PathBuf),
    /// `credential:NAME`: systemd's LoadCredential and SetCredentialEncrypted (systemd.exec(5)).
    Credential(String),
}

impl FromStr for PinSource {
    type Err = String;

    fn from_str(text: &str) -> Result<PinSource, String> {
        match text.split_once(':') {
            None if text == "ask" => Ok(PinSource::Ask),
            Some(("file", path)) if !path.is_empty() => Ok(PinSource::File(path.into())),
            Some(("credential", name)) if !name.is_empty() && !name.contains('/') => {
                Ok(PinSource::Credential(name.to_owned()))
            }
            // The text may be the PIN itself, so the error does not repeat it.
            _ => Err("pin: expected ask, file:/path or credential:NAME".to_owned()),
        }
    }
}

impl PinSource {
    /// Gets the PIN; `card` is the name in the prompt.
    ///
    /// # Errors
    /// One line that names the source and how to fix it.
    pub fn get(&self, card: &str) -> Result<HeldPin, String> {
        let (text, source) = match self {
            PinSource::Ask => {
                let asked = rpassword::prompt_password(format!("PIN of the card {card}: "));
                let asked = asked.map_err(|error| {
                    format!("no terminal to ask for the PIN at ({error}): use file: or credential:")
                })?;
                (Zeroizing::new(asked), "the prompt".to_owned())
            }
            PinSource::File(path) => {
                // Opened once: what is checked is what is read.
                let file = open(path)?;
                check_owner_and_mode(path, &file)?;
                (read(path, file)?, path.display().to_string())
            }
            PinSource::Credential(name) => {
                let folder = env::var_os("CREDENTIALS_DIRECTORY").ok_or_else(|| {
                    format!(
                        "CREDENTIALS_DIRECTORY is not set: add LoadCredential={name}:/path to the \
                         unit"
                    )
                })?;
                let path = Path::new(&folder).join(name);
                (read(&path, open(&path)?)?, format!("the credential {name}"))
            }
        };
        let digits = text.lines().next().unwrap_or_default().trim();
        let plain = (4..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        let pin = HeldPin::new(digits.as_bytes()).filter(|_| plain);
        pin.ok_or_else(|| format!("{source} contains no PIN: expected 4 to 8 digits"))
    }
}

/// Refuses a file that other users can read or write, or that belongs to one of them.
fn check_owner_and_mode(path: &Path, file: &File) -> Result<(), String> {
    let about = file.metadata().map_err(|error| format!("{}: {error}", path.display()))?;
    let (mode, own) = (about.mode(), rustix::process::geteuid().as_raw());
    let path = path.display();
    if about.uid() != own && about.uid() != 0 {
        let uid = about.uid();
        return Err(format!(
            "{path}: belongs to user {uid}: it must belong to the agent's user, {own}, or to root: \
             run chown {own} {path}"
        ));
    }
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(format!(
        "{path}: accessible to other users (mode {:o}): run chmod 600 {path}",
        mode & 0o777
    ))
}

fn open(path: &Path) -> Result<File, String> {
    // A pipe would be waited for until somebody writes to it.
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let file = File::options()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)
        .map_err(|error| unreadable(path, &error))?;
    // What reading a folder says is better than what can be said here.
    match file.metadata().is_ok_and(|about| about.is_file() || about.is_dir()) {
        true => Ok(file),
        false => Err(format!("{}: is no regular file: name the file with the PIN", path.display())),
    }
}

/// Reads into memory that does not grow: growing leaves copies behind.
fn read(path: &Path, mut file: File) -> Result<Zeroizing<String>, String> {
    let mut bytes = Zeroizing::new(vec![0; FILE_MAX_BYTES]);
    let mut length = 0;
    while length < bytes.len() {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(path, &error)),
        }
    }
    let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
    Ok(Zeroizing::new(text.to_owned()))
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    let own = rustix::process::geteuid().as_raw();
    let (at, owner) = (path.display(), fs::symlink_metadata(path).map(|about| about.uid()));
    match (error.kind(), owner) {
        (io::ErrorKind::NotFound, _) => format!("{at}: there is no such file: check the name"),
        (io::ErrorKind::IsADirectory, _) => {
            format!("{at}: is a folder: name the file with the PIN")
        }
        (io::ErrorKind::PermissionDenied, Ok(owner)) if owner == own => {
            format!("{at}: not readable by its owner, user {own}: run chmod 600 {at}")
        }
        (io::ErrorKind::PermissionDenied, Ok(owner)) => format!(
            "{at}: belongs to user {owner} and is closed to the agent's user, {own}: as root, run \
             chown {own} {at}"
        ),
        (io::ErrorKind::PermissionDenied, Err(_)) => {
            format!(
                "{at}: in a folder that is closed to the agent's user, {own}: move it to another"
            )
        }
        _ => format!("{at}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

    #[test]
    fn invalid_source_is_not_repeated_in_the_error() {
        assert_eq!("ask".parse(), Ok(PinSource::Ask));
        assert_eq!("file:/a".parse(), Ok(PinSource::File("/a".into())));
        assert_eq!("credential:sim".parse(), Ok(PinSource::Credential("sim".to_owned())));
        for text in ["1234", "file:", "credential:1234/b", "env:1234"] {
            let error = text.parse::<PinSource>().unwrap_err();
            assert!(!error.contains("1234") && error.lines().count() == 1, "{error}");
        }
    }

    #[test]
    fn file_without_a_valid_pin_is_named_in_the_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pin");
        let get = |text: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            PinSource::File(path.clone()).get("sim")
        };
        assert!(get("1234\n").is_ok());
        for text in ["", "12", "123456789", "12a4"] {
            let Err(error) = get(text) else { panic!("{text} is accepted as a PIN") };
            assert!(error.contains("pin contains no PIN"), "{error}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let Err(error) = PinSource::File(path.clone()).get("sim") else { panic!() };
        assert!(error.contains("(mode 640): run chmod 600"), "{error}");
        let Err(error) = PinSource::File(folder.path().join("none")).get("sim") else { panic!() };
        assert!(error.contains("none: there is no such file: check the name"), "{error}");
        let pipe = folder.path().join("pipe");
        let own = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, own, 0).unwrap();
        let Err(error) = PinSource::File(pipe).get("sim") else { panic!() };
        assert!(error.ends_with("pipe: is no regular file: name the file with the PIN"), "{error}");
        let folder = folder.path().join("folder");
        fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
        let Err(error) = PinSource::File(folder).get("sim") else { panic!() };
        assert!(error.ends_with("is a folder: name the file with the PIN"), "{error}");
    }

    #[test]
    fn closed_file_is_told_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pin");
        fs::write(&path, "1234").unwrap();
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = unreadable(&path, &denied);
        assert!(error.contains("not readable by its owner") && error.contains("chmod 600"));
        let closed = unreadable(&folder.path().join("none/pin"), &denied);
        assert!(closed.contains("in a folder that is closed to the agent's user"), "{closed}");
        // Another user's, wherever the test runs.
        let other = if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            unreadable(&path, &denied)
        } else {
            unreadable(Path::new("/etc/shadow"), &denied)
        };
        assert!(other.contains("belongs to user") && other.contains("run chown"), "{other}");
        assert!(![error, closed, other].iter().any(|text| text.contains("check the name")));
    }
}
