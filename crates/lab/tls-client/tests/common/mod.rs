// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server on loopback for the client's tests, well-behaved or not.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use openssl::ssl::{Ssl, SslContext, SslStream};
use warifu_model::{
    Aead, Authentication, CertificateType, CipherSuite, CongestionControl, Group, Https, KeyShare,
    Session, Stack, Tcp, Tls, TlsVersion,
};
use warifu_tls_client::context::server_context;
use warifu_tls_client::{Pki, Variant};

pub const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
pub const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

/// The plainest variant of its kind.
pub fn variant(tls: TlsVersion, session: Session, authentication: Authentication) -> Variant {
    Variant {
        tls,
        session,
        authentication,
        group: Group::Secp256r1,
        certificate: CertificateType::EcdsaSecp256r1,
        chain_length: 1,
        cipher_suite: CipherSuite::of(tls, CertificateType::EcdsaSecp256r1, Aead::Aes128Gcm),
        key_share: KeyShare::Fresh,
        nagle: false,
        server_name: None,
        psk: None,
    }
}

/// The stack of a case with these choices, as JSON.
pub fn stack_json(variant: &Variant) -> String {
    let stack = Stack::Https(Https {
        tls: Tls {
            version: variant.tls,
            session: variant.session,
            authentication: variant.authentication,
            group: variant.group,
            certificate: variant.certificate,
            chain_length: variant.chain_length,
            server_certificate_bytes: Vec::new(),
            client_certificate_bytes: Vec::new(),
            cipher_suite: variant.cipher_suite,
            key_share: variant.key_share,
            server_name: variant.server_name.clone(),
            psk: variant.psk,
        },
        tcp: Tcp {
            device: "linux-6.18".into(),
            server: "linux-6.18".into(),
            congestion_control: CongestionControl::Cubic,
            initcwnd: 10,
            nagle: variant.nagle,
        },
    });
    serde_json::to_string(&stack).unwrap()
}

/// What a server does to its clients.
#[derive(Clone, Debug)]
pub enum Manner {
    /// Serves the variant.
    Tls(Variant),
    /// Serves it with a certificate that the client does not trust.
    Foreign(Variant),
    /// Serves it and forgets the keys of its tickets at once.
    Forgetful(Variant),
    /// Answers plain HTTP with these bytes.
    Plain(&'static [u8]),
    /// Reads what comes first, and closes.
    Closes,
    /// Closes with something left unread, so that the kernel sends a reset.
    Resets,
    /// Reads for ever and says nothing.
    Silent,
    /// Is not there.
    Refuses,
}

/// A server with its PKI in a folder; both are gone when it is dropped.
pub struct Server {
    address: SocketAddr,
    folder: PathBuf,
    stop: Arc<AtomicBool>,
    accepted: Arc<AtomicU32>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(manner: Manner) -> Server {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let folder = std::env::temp_dir().join(format!(
            "warifu-tls-test-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        let trusted = Pki::generate(CertificateType::EcdsaSecp256r1, 1).unwrap();
        trusted.write(&folder).unwrap();
        let own = match manner {
            Manner::Foreign(_) => Pki::generate(CertificateType::EcdsaSecp256r1, 1).unwrap(),
            _ => trusted,
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let accepted = Arc::new(AtomicU32::new(0));
        let accepting = match manner {
            Manner::Refuses => None,
            manner => {
                let (stop, accepted) = (stop.clone(), accepted.clone());
                Some(std::thread::spawn(move || accept(&listener, &manner, &own, &stop, &accepted)))
            }
        };
        Server { address, folder, stop, accepted, accepting }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections so far.
    pub fn accepted(&self) -> u32 {
        self.accepted.load(Ordering::Relaxed)
    }

    pub fn pki_folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes accept().
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn accept(
    listener: &TcpListener,
    manner: &Manner,
    pki: &Pki,
    stop: &AtomicBool,
    accepted: &AtomicU32,
) {
    let mut context = context(manner, pki);
    for socket in listener.incoming() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let Ok(socket) = socket else { continue };
        accepted.fetch_add(1, Ordering::Relaxed);
        if matches!(manner, Manner::Forgetful(_)) {
            context = self::context(manner, pki);
        }
        let (manner, context) = (manner.clone(), context.clone());
        std::thread::spawn(move || serve(socket, &manner, context.as_ref()));
    }
}

fn context(manner: &Manner, pki: &Pki) -> Option<SslContext> {
    match manner {
        Manner::Tls(variant) | Manner::Foreign(variant) | Manner::Forgetful(variant) => {
            Some(server_context(variant, pki).unwrap())
        }
        _ => None,
    }
}

/// Errors are the client's to find out.
fn serve(mut socket: TcpStream, manner: &Manner, context: Option<&SslContext>) {
    let _ = socket.set_nodelay(true);
    match (manner, context) {
        (Manner::Plain(response), _) => {
            read_request(&mut socket);
            let _ = socket.write_all(response);
        }
        (Manner::Closes, _) => {
            let _ = socket.read(&mut [0; 4_096]);
        }
        (Manner::Resets, _) => {
            let _ = socket.read(&mut [0; 1]);
        }
        (Manner::Silent, _) => while matches!(socket.read(&mut [0; 4_096]), Ok(1..)) {},
        (
            Manner::Tls(variant) | Manner::Foreign(variant) | Manner::Forgetful(variant),
            Some(tls),
        ) => {
            serve_tls(socket, tls, variant.session == Session::EarlyData);
        }
        _ => {}
    }
}

fn serve_tls(socket: TcpStream, context: &SslContext, early: bool) {
    let mut ssl = Ssl::new(context).unwrap();
    ssl.set_accept_state();
    let mut stream = SslStream::new(ssl, socket).unwrap();
    let mut answered = false;
    if early {
        let mut buffer = [0; 4_096];
        while let Ok(1..) = stream.read_early_data(&mut buffer) {
            answered = stream.write_early_data(RESPONSE).is_ok();
        }
    }
    if stream.do_handshake().is_err() {
        linger(stream.get_mut());
        return;
    }
    if !answered {
        read_request(&mut stream);
        let _ = stream.write_all(RESPONSE);
    }
    let _ = stream.shutdown();
    linger(stream.get_mut());
}

fn read_request(stream: &mut impl Read) {
    let mut request = Vec::new();
    let mut buffer = [0; 4_096];
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => request.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
}

/// Lets the client read all before a reset could take it away.
fn linger(socket: &mut TcpStream) {
    let _ = socket.shutdown(std::net::Shutdown::Write);
    let _ = socket.set_read_timeout(Some(Duration::from_secs(5)));
    while matches!(socket.read(&mut [0; 4_096]), Ok(1..)) {}
}
