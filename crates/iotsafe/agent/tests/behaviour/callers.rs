// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who may call and what for, and what a caller cannot do to the others.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use warifu_agent::metrics::Metrics;
use warifu_agent::rights::{Right, Rights};
use warifu_agent::server::{Agent, Socket};
use warifu_agent_protocol::AgentClient;
use warifu_agent_protocol::message::{Answer, Call, JwtRequest};
use warifu_iotsafe_client::{Token, TokenError};
use warifu_os::SystemClock;

use crate::common::{Bench, World, ask, soon};
use crate::{KEY, VOLATILE, bench, nothing_wrong, own_uid, sign};

#[test]
fn rights_by_user_key_and_operation() {
    let with = |rights| Bench::new(World::new(None, nothing_wrong(), 1), None, vec![rights]);
    let denied = |result: Result<_, TokenError>, says: &str| match result {
        Err(TokenError::Denied(text)) => assert!(text.contains(says), "{text}"),
        _ => panic!("not denied"),
    };
    let stranger = with(Rights::all(own_uid() + 1));
    denied(sign(&mut stranger.token(), 1).map(drop), "add a [[caller]]");
    let mut client = stranger.client();
    denied(ask(&mut client, Call::Metrics).map(drop), "add a [[caller]]");

    let keys = Some(vec!["other".to_owned()]);
    let keyless = with(Rights { keys, ..Rights::all(own_uid()) });
    let shown = keyless.token().objects(soon()).unwrap();
    assert!(shown.private_keys.is_empty() && !shown.files.is_empty());
    denied(sign(&mut keyless.token(), 1).map(drop), "may not use the key 01");

    let labelled = Some(vec!["client".to_owned()]);
    let may = vec![Right::Sign];
    let signer = with(Rights { keys: labelled, may, uid: own_uid() });
    assert!(sign(&mut signer.token(), 1).is_ok());
    denied(signer.token().derive(&KEY, &[4; 65], soon()).map(drop), "may not derive");
    denied(signer.token().generate(&VOLATILE, soon()).map(drop), "may not generate");
    let request = JwtRequest { lifetime_s: 60, ..JwtRequest::default() };
    denied(ask(&mut signer.client(), Call::Jwt(request)).map(drop), "may not token");
}

#[test]
fn malformed_request_closes_only_its_connection() {
    use std::io::Read;
    let bench = bench(None, None);
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 0, 0, 2, 1, 0xff], &[0, 0, 0, 1, 9]] {
        let mut stream = UnixStream::connect(&bench.path).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // A reset is an end as well.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
    assert!(sign(&mut bench.token(), 1).is_ok());
}

#[test]
fn panicking_request_frees_slot_and_volatile_keys() {
    let bench = bench(None, None);
    bench.idle();
    let (mut client, mut other) = (bench.client(), bench.token());
    let generate = Call::Generate(VOLATILE.to_vec());
    assert!(matches!(ask(&mut client, generate), Ok(Answer::Pair { .. })));
    assert_eq!(other.generate(&VOLATILE, soon()), Err(TokenError::ContainerInUse));
    // The end of this bench's agent is a mistake.
    assert!(matches!(ask(&mut client, Call::Stop), Ok(Answer::Done)));
    let end = Instant::now() + Duration::from_secs(60);
    while other.generate(&VOLATILE, soon()).is_err() {
        assert!(Instant::now() < end, "the place of the key is free");
        thread::sleep(Duration::from_millis(1));
    }
    while !bench.status().contains("\"callers\":2,") {
        assert!(Instant::now() < end, "only the other one and the one who asks are there");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn stop_request_is_answered_before_the_end() {
    let (tell, told) = mpsc::channel();
    let told = Mutex::new(told);
    let (report, reported) = mpsc::channel();
    // The end waits for the caller to have its answer, as it would not if it came before that.
    let stop = Box::new(move || {
        let in_time = told.lock().unwrap().recv_timeout(Duration::from_secs(10)).is_ok();
        report.send(in_time).unwrap();
    });
    let metrics = Arc::new(Metrics::default());
    let agent = Agent::new(Vec::new(), Vec::new(), metrics, Arc::new(SystemClock), stop);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    let socket = Socket::open(&path, false).unwrap();
    socket.start(&agent).unwrap();
    let answer = AgentClient::new(&path, None).call(Call::Stop, soon());
    tell.send(()).unwrap();
    assert!(reported.recv().unwrap() && matches!(answer, Ok(Answer::Done)));
}
