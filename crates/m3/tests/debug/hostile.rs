// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whatever a client sends, nothing panics and answers are bounded.

use proptest::collection::vec;
use proptest::prelude::*;
use warifu_m3::debug::{Debugger, State};

use crate::client::packet;
use crate::{session, test_programs};

/// Bytes of an answer to one packet at most: all escaped, with a console line before.
const MOST_ANSWERED: usize = 128 * 1024;

/// Any number for each `@`.
const SHAPES: &str = "
    g G@ p@ P@=@ P@=00000000 m@,@ M@,@:@ X@,@:@ c@ s@ c s vCont? vCont;c vCont;s:p1.1
    vCont;r@,@:p1.1 vCont;C@ vCont;s:@ ? Z0,@,@ Z1,@,2 Z2,@,@ Z3,@,@ Z4,@,@ z0,@,@ z2,@,@
    Z@,@,@ H@ Hg@ T@ qSupported:@ qXfer:features:read:target.xml:@,@
    qXfer:memory-map:read::@,@ qXfer:memory-map:read:@:@,@ qRcmd,@ qRcmd,6379636c6573
    qRcmd,7265736574 qRcmd,776879 vFlashErase:@,@ vFlashWrite:@:@ vFlashDone QStartNoAckMode
    qfThreadInfo qsThreadInfo qC qAttached:@ qOffsets D D;@ k vKill;@ R@ ! vRun;@ vAttach;@
    vFile:open:@,@,@ bc bs qCRC:@,@ x@,@
";

fn program() -> &'static [u8] {
    static PROGRAM: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    PROGRAM
        .get_or_init(|| test_programs::compile(&["command-line/ends.c"], &["-O2", "-DEND=ENDLESS"]))
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u32..0x1000).prop_map(|number| format!("{number:x}")),
        any::<u32>().prop_map(|number| format!("{number:x}")),
        any::<u64>().prop_map(|number| format!("{number:x}")),
        (0x2000_0000u32..0x2000_1000).prop_map(|number| format!("{number:x}")),
        (0xe000_e000u32..0xe000_f000).prop_map(|number| format!("{number:x}")),
        Just("ffffffff".to_owned()),
        Just("ffffffffffffffff".to_owned()),
        Just("-1".to_owned()),
        Just(String::new()),
        (0usize..5000).prop_map(|count| "0".repeat(count)),
    ]
}

/// Packets that look like gdb's, with any numbers.
fn plausible() -> impl Strategy<Value = Vec<u8>> {
    let shapes: Vec<&str> = SHAPES.split_whitespace().collect();
    let shapes = prop::sample::select(shapes);
    (shapes, vec(number(), 4)).prop_map(|(shape, numbers)| {
        let mut numbers = numbers.into_iter();
        let body: String = shape
            .chars()
            .map(|letter| match letter {
                '@' => numbers.next().unwrap_or_default(),
                other => other.to_string(),
            })
            .collect();
        packet(body.as_bytes())
    })
}

fn sent() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => plausible(),
        1 => vec(any::<u8>(), 0..200).prop_map(|bytes| packet(&bytes)),
        1 => vec(any::<u8>(), 0..200),
        1 => Just(b"\x03".to_vec()),
        1 => Just(b"+".to_vec()),
        1 => (plausible(), any::<prop::sample::Index>(), any::<u8>()).prop_map(
            |(mut bytes, at, value)| {
                let at = at.index(bytes.len());
                bytes[at] = value;
                bytes
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_packets_are_answered_within_bounds(packets in vec(sent(), 1..60)) {
        let mut debugger = Debugger::new(session(program()), 20_000);
        for bytes in packets {
            if !debugger.is_connected() {
                debugger.connected();
            }
            debugger.receive(&bytes);
            debugger.run(300);
            let answered = debugger.take_output().len();
            prop_assert!(answered <= MOST_ANSWERED, "{answered}");
            prop_assert!(debugger.session().machine.instructions <= 20_000);
            if let State::Ended(_) = debugger.state() {
                break;
            }
        }
    }
}
