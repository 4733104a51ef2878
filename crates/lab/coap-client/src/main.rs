// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lab's CoAP client as a program: its configuration on standard input, one line of JSON for
//! each exchange on standard output, progress on standard error.

use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use warifu_coap_client::{Config, run, version};
use warifu_open_loop::Program;
use warifu_os::VERSION;

const HELP: &str = "\
warifu-coap-client: sends many CoAP GET requests at their own pace and times each

usage: warifu-coap-client < CONFIG.json > TRIALS.ndjson

CONFIG is one JSON object:
  address            the server, \"10.9.0.2:5683\"
  stack              the stack of a case, see below
  path               of the request, with its query (\"/\")
  trials             how many requests, each from a port of its own
  rate_per_second    how many begin in a second
  spread             pauses vary evenly by this share of their mean, 0 to 1 (0)
  concurrent         how many begin at the same moment (1)
  alone              the next begin a pause after those before have ended (false)
  timeout_s          when a request without a response counts as failed
  linger_s           how long a port stays open for a second response (0)
  seed               decides pauses, message IDs, tokens and retransmission timeouts (0)
  token_bytes        length of the token, 0 to 8 (1, as coap-client begins)
  body_bytes         the length that each response's body must have (any)
  datagrams          each line lists its datagrams (false)
stack, here with the parameters of RFC 7252 section 4.8, the timeout in ns; \"NON\" is sent once:
  {\"protocol\": \"coap\", \"message_type\": \"CON\", \"ack_timeout\": 2000000000,
   \"ack_random_factor_percent\": 150, \"max_retransmit\": 4}

Each line has the trial's number and, in ns from just before the socket was made: request_ns,
acknowledged_ns (empty ACK), first_ns (first datagram of the response), done_ns (response decoded);
bytes and datagrams sent and received; how many were sent again; or error.
Exit code 0, 2 for a mistake in the configuration, 3 if it cannot run, 130 if interrupted.
";

fn main() -> ExitCode {
    let program = Program {
        name: "warifu-coap-client",
        version: format!("{VERSION}, {}", version()),
        help: HELP,
        trials: "requests",
    };
    program.main(
        Config::parse,
        |config| config.trials,
        |config, output, progress, stop| {
            raise_descriptor_limit();
            run(config, output, progress, stop)
        },
    )
}

/// An exchange under way has three descriptors, and one whose packets are lost lasts for 93 s.
fn raise_descriptor_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Where it cannot be raised, running out of descriptors is reported when it happens.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
