// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The metrics port, and clients that mean it no good. Alone in its process: it counts memory and
//! file descriptors.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use warifu_agent::http;
use warifu_agent::metrics::Metrics;

/// More than a slow machine needs, less than the test would take without a limit.
const LONG: Duration = Duration::from_secs(60);

/// The tests count what belongs to the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve() -> String {
    http::serve("127.0.0.1:0", &Arc::new(Metrics::default())).unwrap()
}

fn get(address: &str, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LONG))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn paths_and_methods() {
    let _alone = alone();
    let address = serve();
    let said = |request: &str| get(&address, request).unwrap();
    let metrics = said("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(metrics.starts_with("HTTP/1.1 200 ") && metrics.contains("# EOF"), "{metrics}");
    assert!(metrics.contains("application/openmetrics-text; version=1.0.0"), "{metrics}");
    assert!(said("GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404 "));
    assert!(said("POST /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 405 "));
}

#[test]
fn header_without_end_takes_no_memory() {
    let _alone = alone();
    let address = serve();
    let before = resident_bytes();
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    let line = [&b"X: "[..], &[b'a'; 65_000], b"\r\n"].concat();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    // 128 MiB, or as much as the server takes before it closes the connection.
    let sent = (0..2048).take_while(|_| stream.write_all(&line).is_ok()).count();
    let grown = resident_bytes().saturating_sub(before);
    assert!(sent < 2048, "the server has read all of it");
    assert!(grown < 16 << 20, "{grown} bytes");
    assert!(get(&address, "GET /metrics HTTP/1.0\r\n\r\n").unwrap().contains("# EOF"));
}

#[test]
fn idle_and_slow_connections_are_closed() {
    let _alone = alone();
    let address = serve();
    let start = Instant::now();
    let mut idle = TcpStream::connect(&address).unwrap();
    idle.set_read_timeout(Some(LONG)).unwrap();
    assert_eq!(idle.read(&mut [0]).unwrap_or(0), 0, "it is closed");
    // A byte now and then does not keep a connection.
    let mut slow = TcpStream::connect(&address).unwrap();
    while slow.write_all(b"G").is_ok() {
        assert!(start.elapsed() < LONG, "it is never closed");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn many_idle_connections_stop_nobody_for_good() {
    let _alone = alone();
    let address = serve();
    let before = descriptors();
    let idle: Vec<TcpStream> = (0..200).filter_map(|_| TcpStream::connect(&address).ok()).collect();
    // Both ends are in this process; the server has no more than its places.
    assert!(get(&address, "GET /metrics HTTP/1.0\r\n\r\n").unwrap().contains("# EOF"));
    let held = descriptors() - before - idle.len();
    assert!(held <= 70, "the server holds {held} descriptors");
    drop(idle);
}

#[test]
fn want_of_descriptors_stops_nobody_for_good() {
    let _alone = alone();
    let address = serve();
    let mut held = Vec::new();
    let client = TcpStream::connect(&address).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    // A limit just above what is open, so that the server's accept fails.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let few = rustix::process::Rlimit { current: Some(descriptors() as u64 + 8), ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, few).unwrap();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        held.push(file);
    }
    held.pop();
    let waiting = TcpStream::connect(&address);
    std::thread::sleep(Duration::from_millis(500));
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    drop((held, waiting));
    assert!(get(&address, "GET /metrics HTTP/1.0\r\n\r\n").unwrap().contains("# EOF"));
}
