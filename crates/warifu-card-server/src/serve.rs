// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `serve`: the ways in that were asked for, until a signal ends them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use serde::{Deserialize, Serialize};

use crate::error::ServerError;
use crate::host::{Behaviour, Host};
use crate::pty::Line;
use crate::unix::Socket;

/// What is to be served, and how.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The card's state file.
    pub state: PathBuf,
    /// Serve on a Unix socket at this path.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// Serve AT+CSIM on a pseudo-terminal.
    #[serde(default)]
    pub at: bool,
    /// Point this link at the pseudo-terminal.
    #[serde(default)]
    pub link: Option<PathBuf>,
}

/// Where the card is to be found, printed on stdout when it is.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ready {
    /// Always `ready`.
    pub event: &'static str,
    /// The state file.
    pub state: PathBuf,
    /// The Unix socket.
    pub socket: Option<PathBuf>,
    /// The pseudo-terminal.
    pub at: Option<PathBuf>,
    /// The link to it.
    pub link: Option<PathBuf>,
}

/// Why serving ends.
enum End {
    Signal,
    Failed(ServerError),
}

/// Serves until SIGINT, SIGTERM or SIGHUP; `ready` is told where.
///
/// # Errors
/// What keeps a way in from opening, or ended it.
pub fn run(request: &Request, ready: impl FnOnce(&Ready)) -> Result<(), ServerError> {
    if request.socket.is_none() && !request.at {
        return Err(ServerError::Request("no way in: expected a socket, AT or PC/SC".to_owned()));
    }
    let (ends, ended) = mpsc::channel();
    end_on_signals(ends.clone())?;
    let host = Arc::new(Host::open(&request.state, Behaviour::default())?);
    let mut found = Ready { event: "ready", state: request.state.clone(), ..Ready::default() };
    let socket = request.socket.as_deref().map(Socket::open).transpose()?;
    if let Some(socket) = &socket {
        socket.start(&host)?;
        found.socket = Some(socket.path().to_owned());
    }
    let line = request.at.then(|| Line::open(request.link.as_deref())).transpose()?;
    if let Some(line) = &line {
        line.start(host.client())?;
        found.at = Some(line.path().to_owned());
        found.link.clone_from(&request.link);
    }
    ready(&found);
    let end = ended.recv().unwrap_or(End::Signal);
    host.halt();
    match end {
        End::Signal => Ok(()),
        End::Failed(error) => Err(error),
    }
}

fn end_on_signals(ends: Sender<End>) -> Result<(), ServerError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| ServerError::os("waiting for signals", error))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            // Gone means that the end has begun already.
            let _ = ends.send(End::Signal);
        }
    });
    Ok(())
}
