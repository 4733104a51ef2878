// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A TLS 1.3 handshake of the simulated chip with a real server, repeated with the recorded
//! flights. `make m3-tls` builds the client and runs this test.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use warifu_m3::chip::Chip;
use warifu_m3::core::{Core, Operation};
use warifu_m3::machine::{Limits, Machine, Observer};
use warifu_m3::ports::{Pipe, Scripted};
use warifu_m3::program::Program;
use warifu_m3::stop::Stop;
use warifu_m3::timing::{Cycles, Rules};

const CLIENTS: [&str; 8] = [
    "AES_128_GCM_SHA256+SECP256R1+RSA",
    "AES_128_GCM_SHA256+X25519+RSA",
    "CHACHA20_POLY1305_SHA256+SECP256R1+RSA",
    "CHACHA20_POLY1305_SHA256+X25519+RSA",
    "AES_128_GCM_SHA256+SECP256R1+ECDSA",
    "AES_128_GCM_SHA256+X25519+ECDSA",
    "CHACHA20_POLY1305_SHA256+SECP256R1+ECDSA",
    "CHACHA20_POLY1305_SHA256+X25519+ECDSA",
];
/// The server's certificate of a client.
fn kind(client: &str) -> &str {
    client.rsplit('+').next().unwrap_or_default()
}
const MESSAGES: [&str; 7] = [
    "ClientHello",
    "ServerHello",
    "EncryptedExtensions",
    "Certificate",
    "CertificateVerify",
    "Finished_received",
    "Finished_sent",
];

/// A connection that records incoming bytes.
struct Live {
    stream: TcpStream,
    waiting: VecDeque<u8>,
    outgoing: Vec<u8>,
    recorded: Arc<Mutex<Vec<u8>>>,
}

impl Pipe for Live {
    fn write(&mut self, byte: u8) {
        self.outgoing.push(byte);
    }

    fn read(&mut self) -> Option<u8> {
        self.waiting.pop_front()
    }

    /// Sends pending data when the program polls for input. The simulated clock does not advance
    /// while the server works.
    fn available(&mut self) -> Option<usize> {
        if !self.outgoing.is_empty() {
            self.stream.write_all(&self.outgoing).ok()?;
            self.outgoing.clear();
        }
        if self.waiting.is_empty() {
            let mut buffer = [0; 4096];
            let count = self.stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
            self.waiting.extend(&buffer[..count]);
            self.recorded.lock().expect("the recording").extend(&buffer[..count]);
        }
        Some(self.waiting.len())
    }
}

struct Server(Child);

impl Server {
    /// `openssl s_server` on a free port, for several clients in turn.
    fn start(home: &Path, kind: &str, port: u16) -> Self {
        let child = Command::new("openssl")
            .args([
                "s_server",
                "-quiet",
                "-www",
                "-tls1_3",
                "-accept",
                &format!("127.0.0.1:{port}"),
            ])
            .args(["-cert", &format!("server-{kind}.pem"), "-key", &format!("server-{kind}.key")])
            .current_dir(home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Server(child.expect("openssl is installed"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

fn connect(port: u16) -> TcpStream {
    for _ in 0..100 {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
            return stream;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("openssl s_server does not listen");
}

/// The lowest stack pointer.
struct Deepest(u32);

impl Observer for Deepest {
    fn before(&mut self, core: &Core, _operation: &Operation) {
        self.0 = self.0.min(core.registers.r[13]);
    }

    fn after(&mut self, _core: &mut Core, _operation: &Operation, _now: Cycles) {}
}

#[derive(Debug, PartialEq, Eq)]
struct Handshake {
    messages: Vec<(&'static str, Cycles)>,
    total: Cycles,
    instructions: u64,
    stack: u32,
    output: String,
}

fn run(elf: &Path, pipe: Box<dyn Pipe>) -> Handshake {
    let chip: Chip = "mps2-an385".parse().expect("a known chip");
    let mut machine =
        Machine::new(&chip, Rules::cortex_m3().expect("rules")).expect("a memory map");
    let program =
        Program::parse(&std::fs::read(elf).expect("make m3-tls builds it")).expect("an ELF file");
    program.load(&mut machine, &chip).expect("it fits");
    machine.core.memory.ports.pipe = Some(pipe);
    let top = machine.core.registers.r[13];
    let mut deepest = Deepest(top);
    let stop = machine.run_observed(Limits { instructions: 2_000_000_000 }, &mut deepest);
    let output = String::from_utf8(machine.semihosting.output.clone()).expect("text");
    if stop != (Stop::Exit { code: 0 }) {
        let place = stop.address().map(|address| program.describe(address));
        panic!("{stop} {place:?}: {output}");
    }
    let marks = &machine.core.memory.ports.marks;
    let mut messages: Vec<(&'static str, Cycles)> =
        MESSAGES.map(|message| (message, Cycles::default())).to_vec();
    let mut total = Cycles::default();
    for pair in marks.windows(2) {
        let name = machine.core.memory.mark_name(&pair[0]);
        let spent = pair[1].at - pair[0].at;
        total += spent;
        if let Some((_, cycles)) = messages.iter_mut().find(|(message, _)| *message == name) {
            *cycles += spent;
        }
    }
    Handshake {
        messages,
        total,
        instructions: machine.instructions,
        stack: top - deepest.0,
        output,
    }
}

#[test]
fn tls_1_3_handshake_by_message() {
    let home =
        PathBuf::from(std::env::var("WARIFU_M3_TLS").expect("WARIFU_M3_TLS: run make m3-tls"));
    let servers = ["RSA", "ECDSA"].map(|kind| {
        let port = free_port();
        (kind, port, Server::start(&home, kind, port))
    });
    let mut handshakes = Vec::new();
    for client in CLIENTS {
        let port = servers.iter().find(|(of, ..)| *of == kind(client)).expect("a server").1;
        let elf = home.join(format!("{client}.elf"));
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let live = Live {
            stream: connect(port),
            waiting: VecDeque::new(),
            outgoing: Vec::new(),
            recorded: Arc::clone(&recorded),
        };
        let with_server = run(&elf, Box::new(live));
        assert!(with_server.output.contains(" answered\n"), "{}", with_server.output);
        let flights = recorded.lock().expect("the recording").clone();
        std::fs::write(home.join(format!("{client}.flights")), &flights)
            .expect("the recording is kept");
        handshakes.push((client, flights));
    }
    drop(servers);
    println!("| message | {} |\n|---|{}", CLIENTS.join(" | "), "---|".repeat(CLIENTS.len()));
    let runs: Vec<Handshake> = handshakes
        .into_iter()
        .map(|(client, flights)| {
            let elf = home.join(format!("{client}.elf"));
            let again = || {
                run(
                    &elf,
                    Box::new(Scripted {
                        incoming: flights.iter().copied().collect(),
                        outgoing: Vec::new(),
                    }),
                )
            };
            let first = again();
            // The same flights give the same run, to the cycle.
            assert_eq!(first, again());
            assert!(first.messages.iter().all(|(_, cycles)| cycles.high > 0), "{first:?}");
            first
        })
        .collect();
    let row = |name: &str, cell: &dyn Fn(&Handshake) -> String| {
        println!("| {name} | {} |", runs.iter().map(cell).collect::<Vec<_>>().join(" | "));
    };
    for (index, message) in MESSAGES.iter().enumerate() {
        row(message, &|run| run.messages[index].1.to_string());
    }
    row("handshake, cycles", &|run| run.total.to_string());
    row("instructions of the whole run", &|run| run.instructions.to_string());
    row("stack, bytes", &|run| run.stack.to_string());
    row("heap, bytes at most", &|run| {
        let text = run
            .output
            .split("heap_peak ")
            .nth(1)
            .and_then(|text| text.lines().next())
            .expect("heap_peak");
        u32::from_str_radix(text, 16).expect("a number").to_string()
    });
}
