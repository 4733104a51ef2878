// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lab's client as a program: its configuration on standard input, one line of JSON for each
//! connection on standard output, progress on standard error.

use std::process::ExitCode;

use warifu_open_loop::Program;
use warifu_tls_client::VERSION;
use warifu_tls_client::client::{Config, run};

const HELP: &str = "\
warifu-tls-client: opens many HTTPS connections at their own pace and times each

usage: warifu-tls-client < CONFIG.json > TRIALS.ndjson

CONFIG is one JSON object:
  stack            the stack of a case, see below; null speaks plain HTTP
  pki              a folder that `warifu-tls pki` made
  address          \"10.9.0.2:8443\"
  trials           how many connections
  rate_per_second  how many begin in a second
  spread           pauses vary evenly by this share of their mean, 0 to 1 (0)
  timeout_s        when a connection without a response counts as failed
  seed             decides the pauses (0)
  path             of the GET request (\"/\")
  sessions         how many are got beforehand for variants that resume (16)
  alone            the next begins a pause after the one before has ended (false)
  round_trip_s     the link's: no connection begins where another computes, once in so long (0:
                   each begins when it is due)
  work_s           for how long a connection computes (0)
stack (certificates are the PKI's, TCP is the kernel's but for nagle):
  {\"protocol\": \"https\",
   \"tls\": {\"version\": \"1.3\", \"session\": \"full\", \"authentication\": \"mutual\",
     \"group\": \"secp256r1\", \"certificate\": \"ecdsa_secp256r1\", \"chain_length\": 1,
     \"server_certificate_bytes\": [474], \"client_certificate_bytes\": [474],
     \"cipher_suite\": \"TLS_AES_128_GCM_SHA256\", \"key_share\": \"fresh\"},
   \"tcp\": {\"device\": \"linux-6.18\", \"server\": \"linux-6.18\",
     \"congestion_control\": \"cubic\", \"initcwnd\": 10, \"nagle\": false}}

Each line has the trial's number and, in ns from just before connect(): connect_ns,
handshake_ns, first_ns (first byte of the response), done_ns; sent and received bytes; or error.
Exit code 0, 2 for a mistake in the configuration, 3 if it cannot run, 130 if interrupted.
";

fn main() -> ExitCode {
    let program = Program {
        name: "warifu-tls-client",
        version: format!("{VERSION}, {}", openssl::version::version()),
        help: HELP,
        trials: "connections",
    };
    program.main(Config::parse, |config| config.trials, run)
}
