// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The card behind a modem on a pseudo-terminal; [`crate::at`] is the modem.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::OptionalActions;
use warifu_os::clock;

use crate::LOG;
use crate::at::{Commands, Modem, Sim};
use crate::error::ServerError;
use crate::host::{Client, Reply};

/// A modem's serial line. The link is removed when this is dropped.
#[derive(Debug)]
pub struct Line {
    modem_side: File,
    /// Kept open: otherwise the line would hang up whenever a program closes it.
    _host_side: OwnedFd,
    path: PathBuf,
    link: Option<PathBuf>,
}

impl Line {
    /// Opens a line, mode 0600, and points `link` at it.
    ///
    /// # Errors
    /// [`ServerError::Request`] if the link exists and is not a symbolic link; the kernel's errors.
    pub fn open(link: Option<&Path>) -> Result<Line, ServerError> {
        let os = |doing: &str, errno: rustix::io::Errno| ServerError::os(doing, errno);
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let modem_side =
            rustix::pty::openpt(flags).map_err(|errno| os("opening a pseudo-terminal", errno))?;
        rustix::pty::grantpt(&modem_side).map_err(|errno| os("grantpt", errno))?;
        rustix::pty::unlockpt(&modem_side).map_err(|errno| os("unlockpt", errno))?;
        let name =
            rustix::pty::ptsname(&modem_side, Vec::new()).map_err(|errno| os("ptsname", errno))?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(name.into_bytes()));
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let host_side = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(|errno| ServerError::file(&path, errno.into()))?;
        raw(&host_side).map_err(|errno| os("setting the pseudo-terminal", errno))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
            .map_err(|error| ServerError::file(&path, error))?;
        if let Some(link) = link {
            point(link, &path)?;
        }
        let link = link.map(Path::to_owned);
        Ok(Line { modem_side: File::from(modem_side), _host_side: host_side, path, link })
    }

    /// The device that a program opens.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts a modem with these commands, on a thread of its own.
    ///
    /// # Errors
    /// The kernel's, for the second descriptor.
    pub fn start(&self, client: Client, commands: Commands) -> Result<(), ServerError> {
        let side = self.modem_side.try_clone().map_err(|error| ServerError::os("dup", error))?;
        std::thread::spawn(move || {
            if let Err(error) = converse(side, &client, commands) {
                LOG.line(format_args!("the line of the modem: {error}"));
            }
        });
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(link) = &self.link
            && fs::read_link(link).is_ok_and(|target| target == self.path)
        {
            // It may have been removed already.
            let _ = fs::remove_file(link);
        }
    }
}

/// No echo, no signals, no translation by the kernel: the modem does its own echo.
fn raw(side: &OwnedFd) -> rustix::io::Result<()> {
    let mut settings = rustix::termios::tcgetattr(side)?;
    settings.make_raw();
    rustix::termios::tcsetattr(side, OptionalActions::Now, &settings)
}

fn point(link: &Path, to: &Path) -> Result<(), ServerError> {
    match fs::symlink_metadata(link) {
        Ok(about) if about.is_symlink() => {
            fs::remove_file(link).map_err(|error| ServerError::file(link, error))?;
        }
        Ok(_) => {
            return Err(ServerError::Request(format!(
                "{}: the file exists and is not a symbolic link: choose another --link",
                link.display()
            )));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(ServerError::file(link, error)),
    }
    std::os::unix::fs::symlink(to, link).map_err(|error| ServerError::file(link, error))
}

fn converse(mut side: File, client: &Client, commands: Commands) -> io::Result<()> {
    let mut modem = Modem::new(commands);
    let mut room = [0; 4096];
    loop {
        let count = match side.read(&mut room) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // The other side was closed: the line was dropped, at the end of the server.
            Err(error)
                if rustix::io::Errno::from_io_error(&error) == Some(rustix::io::Errno::IO) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let received = clock::now();
        for &byte in &room[..count] {
            let Some(line) = modem.push(byte) else { continue };
            // The echo does not wait for the card.
            side.write_all(&modem.take_output())?;
            modem.obey(&line, &mut |apdu| match client.transmit(apdu, received) {
                Reply::Answer(answer) => Sim::Answer(answer),
                Reply::Lost => Sim::Silent,
                Reply::Absent => Sim::Absent,
                Reply::Reset => Sim::Failure,
            });
            side.write_all(&modem.take_output())?;
        }
        side.write_all(&modem.take_output())?;
    }
}
