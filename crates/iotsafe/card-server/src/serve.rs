// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `serve`: serves the requested interfaces until a signal ends them.

use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use warifu_card::timing::{CardProfile, Timing};

use crate::at::Commands;
use crate::error::ServerError;
use crate::faults;
use crate::host::{Behaviour, Host};
use crate::pcsc::{self, Pcsc};
use crate::pty::Line;
use crate::unix::Socket;
use crate::vpcd;

/// Of a card's timing; the longest that is shipped has 4 kB.
const PROFILE_MAX_BYTES: u64 = 1 << 20;
/// The timeout for vpcd to listen.
const VPCD_PATIENCE: Duration = Duration::from_secs(5);

/// A request to serve a card.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The card's state file.
    pub state: PathBuf,
    /// Serve on a Unix socket at this path.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// Serve as a modem on a pseudo-terminal.
    #[serde(default)]
    pub at: bool,
    /// The commands of that modem.
    #[serde(default)]
    pub at_commands: Commands,
    /// Point this link at the pseudo-terminal.
    #[serde(default)]
    pub link: Option<PathBuf>,
    /// Start pcscd with the card in its reader.
    #[serde(default)]
    pub pcsc: bool,
    /// The folder for the socket of that pcscd, instead of the usual one.
    #[serde(default)]
    pub pcscd_dir: Option<PathBuf>,
    /// Connect the card to a running vpcd at this address.
    #[serde(default)]
    pub vpcd: Option<SocketAddr>,
    /// The timing of the card.
    #[serde(default)]
    pub timing: Option<TimingRequest>,
    /// End with the process that started this one.
    #[serde(default)]
    pub with_parent: bool,
    /// The faults: text for [`faults::parse`].
    #[serde(default)]
    pub faults: Option<String>,
    /// Whose files are read and written, where root serves a card in a user's folder.
    #[serde(default)]
    pub files_of: Option<FilesOf>,
}

/// The user for whom root serves.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesOf {
    /// The user's number.
    pub user: u32,
    /// The group's.
    pub group: u32,
}

/// A timing profile and its seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimingRequest {
    /// The profile's file, TOML.
    pub profile: PathBuf,
    /// The seed of every draw.
    #[serde(default)]
    pub seed: u64,
}

/// The addresses of the card, printed on stdout when it is ready.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ready {
    /// Always `ready`.
    pub event: &'static str,
    /// This process.
    pub pid: u32,
    /// The state file.
    pub state: PathBuf,
    /// The Unix socket.
    pub socket: Option<PathBuf>,
    /// The pseudo-terminal.
    pub at: Option<PathBuf>,
    /// The link to it.
    pub link: Option<PathBuf>,
    /// The PC/SC reader.
    pub reader: Option<&'static str>,
    /// pcscd's socket.
    pub pcscd: Option<PathBuf>,
    /// The timing profile's name.
    pub timing: Option<String>,
}

/// The end, printed on stdout.
#[derive(Clone, Debug, Serialize)]
pub struct Stopped {
    /// Always `stopped`.
    pub event: &'static str,
    /// How often each fault happened.
    pub faults: std::collections::BTreeMap<&'static str, u64>,
}

/// Why serving ends.
enum End {
    Signal,
    Failed(ServerError),
}

/// Serves until SIGINT, SIGTERM or SIGHUP; calls `ready` with the addresses, `stopped` at the end.
///
/// # Errors
/// Why an interface could not be opened, or has ended.
pub fn run(
    request: &Request,
    ready: impl FnOnce(&Ready),
    stopped: impl FnOnce(&Stopped),
) -> Result<(), ServerError> {
    let ways = [request.socket.is_some(), request.at, request.pcsc, request.vpcd.is_some()];
    if !ways.contains(&true) {
        let text = "no interface to serve: expected --socket, --at, --pcsc or --vpcd";
        return Err(ServerError::Request(text.to_owned()));
    }
    // Before any thread is started, and before prctl, which it would undo (commit_creds).
    if let Some(FilesOf { user, group }) = request.files_of {
        warifu_os::set_fs_user(user, group)
            .map_err(|error| ServerError::Request(format!("files_of: user {user}: {error}")))?;
    }
    let (ends, ended) = mpsc::channel();
    end_on_signals(ends.clone())?;
    if request.with_parent {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
            .map_err(|errno| ServerError::os("prctl PR_SET_PDEATHSIG", errno))?;
    }
    let behaviour = behaviour(request)?;
    let timing = behaviour.timing.as_ref().map(|timing| timing.profile().name.clone());
    let host = Arc::new(Host::open(&request.state, behaviour)?);
    let mut found = Ready { event: "ready", pid: std::process::id(), timing, ..Ready::default() };
    found.state.clone_from(&request.state);

    let socket = request.socket.as_deref().map(Socket::open).transpose()?;
    if let Some(socket) = &socket {
        socket.start(&host)?;
        found.socket = Some(socket.path().to_owned());
    }
    let line = request.at.then(|| Line::open(request.link.as_deref())).transpose()?;
    if let Some(line) = &line {
        line.start(host.client(), request.at_commands)?;
        found.at = Some(line.path().to_owned());
        found.link.clone_from(&request.link);
    }
    if let Some(address) = request.vpcd {
        insert(&host, address, ends.clone())?;
        found.reader = Some(pcsc::READER);
    }
    let failed = move |error| {
        // Without a receiver the server is ending already.
        let _ = ends.send(End::Failed(error));
    };
    let pcsc = request
        .pcsc
        .then(|| Pcsc::start(&host, request.pcscd_dir.as_deref(), failed))
        .transpose()?;
    if let Some(pcsc) = &pcsc {
        found.reader = Some(pcsc::READER);
        found.pcscd = Some(pcsc.socket().to_owned());
    }

    // An earlier failure is reported instead.
    let end = ended.try_recv().or_else(|_| {
        ready(&found);
        ended.recv()
    });
    stopped(&Stopped { event: "stopped", faults: host.fault_counts().into_iter().collect() });
    host.halt();
    match end {
        Ok(End::Failed(error)) => Err(error),
        Ok(End::Signal) | Err(_) => Ok(()),
    }
}

fn behaviour(request: &Request) -> Result<Behaviour, ServerError> {
    let timing = request.timing.as_ref().map(|timing| {
        let path = &timing.profile;
        let text = read_profile(path).map_err(|error| ServerError::file(path, error))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let profile = CardProfile::parse(&name, &text, &path.to_string_lossy())
            .map_err(|error| ServerError::Request(error.to_string()))?;
        Ok(Timing::new(profile, timing.seed))
    });
    let faults = request.faults.as_deref().map(|text| faults::parse(text, "--faults"));
    Ok(Behaviour { timing: timing.transpose()?, faults: faults.transpose()? })
}

/// The text of a profile, of at most [`PROFILE_MAX_BYTES`]: its name is the user's.
fn read_profile(path: &Path) -> io::Result<String> {
    // A pipe without a writer is not waited for.
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(nonblocking).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is no regular file"));
    }
    warifu_os::refuse_proc(&file)?;
    let mut text = String::new();
    if file.take(PROFILE_MAX_BYTES + 1).read_to_string(&mut text)? as u64 > PROFILE_MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is longer than 1 MiB"));
    }
    Ok(text)
}

/// Connects the card to a running reader.
fn insert(host: &Arc<Host>, address: SocketAddr, ends: Sender<End>) -> Result<(), ServerError> {
    let stream = vpcd::connect(address, VPCD_PATIENCE, &mut || None)?;
    let client = host.client();
    let (ready, is_ready) = mpsc::channel();
    std::thread::spawn(move || {
        let mut found = || {
            // The receiver may have given up.
            let _ = ready.send(());
        };
        if let Err(error) = vpcd::serve(stream, address, &client, &mut found) {
            // Without a receiver the server is ending already.
            let _ = ends.send(End::Failed(error));
        }
    });
    // Where the thread failed, it has told why.
    let _ = is_ready.recv_timeout(pcsc::FOUND_WITHIN);
    Ok(())
}

fn end_on_signals(ends: Sender<End>) -> Result<(), ServerError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| ServerError::os("waiting for signals", error))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            // Without a receiver the server is ending already.
            let _ = ends.send(End::Signal);
        }
    });
    Ok(())
}
