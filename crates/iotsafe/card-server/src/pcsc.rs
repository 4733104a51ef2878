// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The card in a PC/SC reader: pcscd and its virtual reader in a network namespace of their own.
//!
//! vpcd listens on every address, so pcscd runs in a namespace without a name, where no other
//! program can reach it, and which ends with the last process in it. Programs reach pcscd through
//! its Unix socket as usual, from any namespace.

use std::fs::{self, Permissions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::mount::MountPropagationFlags;
use rustix::process::{Pid, Signal};
use rustix::thread::UnshareFlags;

use crate::error::ServerError;
use crate::host::{Client, Host};
use crate::vpcd;
use warifu_os::RootFsGuard;

/// Where pcscd keeps its socket (pcscd(8)); clients take another from `PCSCLITE_CSOCK_NAME`.
pub const RUN_DIR: &str = "/run/pcscd";
/// The reader's first slot, as pcscd names it; the second has no card.
pub const READER: &str = "Virtual PCD 00 00";

/// The name of its socket.
const SOCKET: &str = "pcscd.comm";
/// In our folder: what pcscd has in [`RUN_DIR`] where that is not the usual one, and its settings.
const RUN: &str = "run";
const SETTINGS: &str = "reader.conf.d";

const PCSCD: &str = "/usr/sbin/pcscd";
/// Where Debian has the driver, by architecture or not.
const DRIVER: &str = "/usr/lib/pcsc/drivers/serial/libifdvpcd.so";
/// The timeout for the start of the reader, and for the end of pcscd.
const PATIENCE: Duration = Duration::from_secs(10);
/// The timeout for pcscd to find the card; it polls every 0.4 s.
pub const FOUND_WITHIN: Duration = Duration::from_secs(3);

/// pcscd with the card in its reader; both end when this is dropped.
#[derive(Debug)]
pub struct Pcsc {
    pcscd: Arc<Mutex<Option<Child>>>,
    socket: PathBuf,
    /// A symbolic link to the socket, where another pcscd has the usual folder.
    link: Option<PathBuf>,
    folder: PathBuf,
}

impl Pcsc {
    /// Starts pcscd, connects the card to its reader and waits until it is found.
    ///
    /// `run_dir` is the folder of its socket, if another pcscd is running; None for the usual one.
    /// `failed` is called if it ends by itself.
    ///
    /// # Errors
    /// [`ServerError::Missing`] for missing rights or packages, or another pcscd; it says how to
    /// fix it.
    pub fn start(
        host: &Arc<Host>,
        run_dir: Option<&Path>,
        failed: impl FnOnce(ServerError) + Send + 'static,
    ) -> Result<Pcsc, ServerError> {
        check(run_dir)?;
        let socket = run_dir.unwrap_or(Path::new(RUN_DIR)).join(SOCKET);
        let folder = as_root(make_folder)?;
        let pcscd = Arc::new(Mutex::new(None));
        let link = run_dir.is_some().then(|| socket.clone());
        let pcsc = Pcsc { pcscd: Arc::clone(&pcscd), socket, link, folder: folder.clone() };
        if let Some(link) = &pcsc.link {
            point(link, &folder.join(RUN).join(SOCKET))?;
        }
        let is_elsewhere = run_dir.is_some();
        let (ready, is_ready) = mpsc::channel();
        let client = host.client();
        // A namespace belongs to a thread: this one stays in it, as does the pcscd that it starts.
        std::thread::spawn(move || {
            let served = {
                // Dropped with this block, which tells the receiver of the failure.
                let ready = ready;
                bring_up(&folder, is_elsewhere, &pcscd)
                    .and_then(|stream| insert(stream, &client, &ready))
            };
            if let Err(error) = served {
                failed(error);
            }
            // pcscd gets a signal at the end of this thread (prctl(2), PR_SET_PDEATHSIG).
            loop {
                std::thread::park();
            }
        });
        // If the thread has failed, it has reported why.
        let _ = is_ready.recv_timeout(PATIENCE + FOUND_WITHIN);
        Ok(pcsc)
    }

    /// pcscd's socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Pcsc {
    fn drop(&mut self) {
        let child = self.pcscd.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut child) = child {
            end(&mut child);
        }
        if let Some(link) = &self.link
            && fs::read_link(link).is_ok_and(|target| target.starts_with(&self.folder))
        {
            // The user may have removed it.
            let _ = fs::remove_file(link);
        }
        // At worst a file of settings remains in the folder for temporary files.
        let _ = as_root(|| {
            let _ = fs::remove_dir_all(&self.folder);
            Ok(())
        });
    }
}

/// Does something with files that are the reader's, not the card's.
fn as_root<T>(work: impl FnOnce() -> Result<T, ServerError>) -> Result<T, ServerError> {
    let _files =
        RootFsGuard::take().map_err(|error| ServerError::file(&std::env::temp_dir(), error))?;
    work()
}

fn check(run_dir: Option<&Path>) -> Result<(), ServerError> {
    let missing = |text: String| Err(ServerError::Missing(text));
    if !rustix::process::geteuid().is_root() {
        return missing(
            "PC/SC needs root for pcscd and a network namespace: run it with sudo, or serve the \
             card with --socket or --at"
                .to_owned(),
        );
    }
    for (path, package) in [(PCSCD, "pcscd"), (DRIVER, "vsmartcard-vpcd")] {
        if !Path::new(path).exists() {
            return missing(format!("{path} is missing: `apt-get install {package}`"));
        }
    }
    if let Some(socket) = run_dir.map(|run_dir| run_dir.join(SOCKET))
        && UnixStream::connect(&socket).is_ok()
    {
        return missing(format!(
            "a pcscd answers at {} already: choose another --pcscd-dir",
            socket.display()
        ));
    }
    let socket = Path::new(RUN_DIR).join(SOCKET);
    if run_dir.is_none() && UnixStream::connect(&socket).is_ok() {
        return missing(format!(
            "pcscd is running already ({}): stop it with `systemctl stop pcscd.socket pcscd`, or \
             use \
             --pcscd-dir DIR and PCSCLITE_CSOCK_NAME=DIR/pcscd.comm for the programs",
            socket.display()
        ));
    }
    Ok(())
}

/// Root's own folder, for what this pcscd has: its settings, and its socket, which programs of all
/// users may open.
fn make_folder() -> Result<PathBuf, ServerError> {
    let temporary = std::env::temp_dir();
    let open_to_all = Permissions::from_mode(0o755);
    let folder = tempfile::Builder::new()
        .prefix("warifu-card-")
        .permissions(open_to_all.clone())
        .tempdir()
        .map_err(|error| ServerError::file(&temporary, error))?;
    for name in [SETTINGS, RUN] {
        let path = folder.path().join(name);
        fs::create_dir(&path)
            .and_then(|()| fs::set_permissions(&path, open_to_all.clone()))
            .map_err(|error| ServerError::file(&path, error))?;
    }
    Ok(folder.keep())
}

/// A link at `link`, as the user, in the place of one that was left behind.
fn point(link: &Path, socket: &Path) -> Result<(), ServerError> {
    let wrong = |error| ServerError::file(link, error);
    if let Some(run_dir) = link.parent() {
        fs::create_dir_all(run_dir).map_err(|error| ServerError::file(run_dir, error))?;
    }
    match fs::symlink_metadata(link) {
        Ok(about) if about.is_symlink() || about.file_type().is_socket() => {
            fs::remove_file(link).map_err(wrong)?;
        }
        Ok(_) => {
            return Err(ServerError::Request(format!(
                "{}: there is something other than a socket: choose another --pcscd-dir",
                link.display()
            )));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(wrong(error)),
    }
    std::os::unix::fs::symlink(socket, link).map_err(wrong)
}

/// Moves this thread to a new namespace, starts pcscd in it and connects to its reader.
fn bring_up(
    folder: &Path,
    is_elsewhere: bool,
    pcscd: &Mutex<Option<Child>>,
) -> Result<TcpStream, ServerError> {
    let mut flags = UnshareFlags::NEWNET;
    if is_elsewhere {
        flags |= UnshareFlags::NEWNS;
    }
    // SAFETY: descriptors stay shared (no UnshareFlags::FILES), so no thread sees another's table.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(|errno| {
        ServerError::Missing(format!(
            "creating a network namespace failed ({errno}): run the container with --cap-add \
             SYS_ADMIN \
             and --cap-add NET_ADMIN, or serve the card with --socket or --at"
        ))
    })?;
    run(Command::new("ip").args(["link", "set", "lo", "up"]), "iproute2")?;
    if is_elsewhere {
        as_root(|| move_run_dir(&folder.join(RUN)))?;
    }
    let port = vpcd::PORT;
    let settings = format!(
        "FRIENDLYNAME \"Virtual PCD\"\nDEVICENAME /dev/null:{port}\nLIBPATH {DRIVER}\n\
         CHANNELID {port}\n"
    );
    let settings_folder = folder.join(SETTINGS);
    let path = settings_folder.join("vpcd");
    as_root(|| fs::write(&path, settings).map_err(|error| ServerError::file(&path, error)))?;
    // setpriv ends pcscd with this process, however that ends.
    let child = Command::new("setpriv")
        .args(["--pdeathsig", "TERM", "--", PCSCD, "--foreground", "--critical", "--config"])
        .arg(settings_folder)
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .spawn()
        .map_err(|error| tool_missing("setpriv", "util-linux", &error))?;
    *pcscd.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    vpcd::connect(address, PATIENCE, &mut || {
        let mut child = pcscd.lock().unwrap_or_else(PoisonError::into_inner);
        let status = child.as_mut()?.try_wait().ok()??;
        Some(ServerError::Missing(format!(
            "pcscd has ended ({status}): see its messages above, or run `pcscd --foreground \
             --debug`"
        )))
    })
}

/// Mounts a folder of ours at that of pcscd's socket, for children of this thread: pcscd opens
/// files there as root, and follows links.
fn move_run_dir(own: &Path) -> Result<(), ServerError> {
    let os = |doing: &str, errno: rustix::io::Errno| ServerError::os(doing, errno);
    let usual = Path::new(RUN_DIR);
    fs::create_dir_all(usual).map_err(|error| ServerError::file(usual, error))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private)
        .map_err(|errno| os("making mounts private", errno))?;
    rustix::mount::mount_bind(own, RUN_DIR)
        .map_err(|errno| os(&format!("mounting {} on {RUN_DIR}", own.display()), errno))
}

fn insert(stream: TcpStream, client: &Client, ready: &Sender<()>) -> Result<(), ServerError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, vpcd::PORT));
    vpcd::serve(stream, address, client, &mut || {
        // The receiver may have given up.
        let _ = ready.send(());
    })
}

fn run(command: &mut Command, package: &str) -> Result<(), ServerError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| tool_missing(&program, package, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(ServerError::Missing(format!("`{program}` failed in the namespace: {said}")))
}

fn tool_missing(program: &str, package: &str, error: &io::Error) -> ServerError {
    ServerError::Missing(format!(
        "starting `{program}` failed ({error}): `apt-get install {package}`"
    ))
}

/// Ends a program with SIGTERM, so that it removes its socket, or else with SIGKILL.
fn end(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
    for _ in 0..100 {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
}
