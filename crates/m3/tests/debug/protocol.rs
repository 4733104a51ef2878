// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What gdb asks for, packet by packet.

use warifu_m3::debug::{MAX_POINTS, PACKET_BYTES, State};
use warifu_m3::program::Program;
use warifu_m3::stop::Stop;

use crate::client::{Client, packet};
use crate::{MOST, session, test_programs};

/// Calls `add` five times, prints, and exits with 7.
const SOURCE: &str = "
int counter, table[4] = {1, 2, 3, 4};
void print(const char *text);
__attribute__((noipa)) int add(int a, int b) { counter += a; return a + b; }
int main(void)
{
    int sum = 0;
    for (int i = 1; i <= 5; i++)
        sum = add(i, sum);
    print(\"done\\n\");
    return sum == 15 ? 7 : 1;
}
";

fn compiled(source: &str) -> Vec<u8> {
    let file = tempfile::Builder::new().suffix(".c").tempfile().expect("a file");
    std::fs::write(file.path(), source).expect("written");
    test_programs::compile(&[&file.path().display().to_string()], &["-O1"])
}

fn ends(end: &str) -> Vec<u8> {
    test_programs::compile(&["command-line/ends.c"], &["-O2", &format!("-DEND={end}")])
}

fn symbol(file: &[u8], name: &str) -> u32 {
    Program::parse(file).expect("a program").label(name).expect("a symbol")
}

#[test]
fn description_has_the_features_that_gdb_looks_for() {
    let mut client = Client::of(&compiled(SOURCE));
    let supported = client.ask("qSupported:multiprocess+;swbreak+;hwbreak+;vContSupported+");
    for feature in ["PacketSize=4000", "qXfer:features:read+", "qXfer:memory-map:read+"] {
        assert!(supported.contains(feature), "{supported}");
    }
    let description = client.ask("qXfer:features:read:target.xml:0,fff");
    for part in ["org.gnu.gdb.arm.m-profile", "org.gnu.gdb.arm.m-system", "\"xpsr\"", "\"psp\""] {
        assert!(description.contains(part), "{description}");
    }
    let map = client.ask("qXfer:memory-map:read::0,fff");
    assert!(
        map.contains("<memory type=\"ram\" start=\"0x20000000\" length=\"0x400000\">"),
        "{map}"
    );
    assert!(map.contains("start=\"0xe0000000\""), "{map}");
    assert!(client.ask("qXfer:memory-map:read::ffffffffffffffff,fff").starts_with('l'));
    assert!(client.ask("?").starts_with("T05"));
}

#[test]
fn program_is_halted_at_reset_and_its_exit_code_is_reported() {
    let file = compiled(SOURCE);
    let mut client = Client::of(&file);
    let plain = session(&file);
    assert_eq!(client.register(15), plain.machine.core.registers.pc());
    assert_eq!(client.register(13), plain.machine.core.registers.r[13]);
    client.debugger.run(1000);
    assert_eq!(client.debugger.session().machine.instructions, 0, "it waits");
    assert_eq!(client.go("vCont;c"), "W07");
    assert_eq!(*client.debugger.state(), State::Ended(Stop::Exit { code: 7 }));
    assert_eq!(client.debugger.session().machine.semihosting.output, b"done\n");
}

#[test]
fn cycles_are_those_of_a_run_without_debugger() {
    let file = compiled(SOURCE);
    let mut plain = session(&file);
    plain.machine.run(warifu_m3::machine::Limits { instructions: MOST });
    let mut client = Client::of(&file);
    let add = symbol(&file, "add");
    assert_eq!(client.ask(&format!("Z0,{add:x},2")), "OK");
    assert!(client.go("c").contains("swbreak"));
    for _ in 0..20 {
        let report = client.go("s");
        assert!(report == "S05" || report.contains("swbreak"), "{report}");
    }
    assert_eq!(client.ask(&format!("z0,{add:x},2")), "OK");
    assert_eq!(client.go("c"), "W07");
    let machine = &client.debugger.session().machine;
    assert_eq!(machine.core.clock, plain.machine.core.clock);
    assert_eq!(machine.instructions, plain.machine.instructions);
}

#[test]
fn detached_program_runs_on_with_the_same_cycles() {
    let file = compiled(SOURCE);
    let mut plain = session(&file);
    plain.machine.run(warifu_m3::machine::Limits { instructions: MOST });
    for steps in 0..12 {
        let mut client = Client::of(&file);
        client.ask(&format!("Z1,{:x},2", symbol(&file, "add")));
        assert!(client.go("c").contains("hwbreak"));
        for _ in 0..steps {
            client.go("s");
        }
        assert_eq!(client.ask("D"), "OK");
        assert_eq!(*client.debugger.state(), State::Alone);
        assert_eq!(client.until_stopped().0, "Exit { code: 7 }");
        assert_eq!(client.debugger.session().machine.core.clock, plain.machine.core.clock);
    }
}

#[test]
fn breakpoint_stops_before_its_instruction_each_time() {
    let file = compiled(SOURCE);
    let add = symbol(&file, "add");
    for (kind, name) in [(0, "swbreak"), (1, "hwbreak")] {
        let mut client = Client::of(&file);
        assert_eq!(client.ask(&format!("Z{kind},{add:x},2")), "OK");
        for call in 1..=5 {
            assert!(client.go("vCont;c").contains(name));
            assert_eq!((client.register(15), client.register(0)), (add, call));
        }
        assert_eq!(client.go("vCont;c"), "W07");
    }
}

#[test]
fn breakpoints_are_bounded_in_number() {
    let mut client = Client::of(&compiled(SOURCE));
    for index in 0..MAX_POINTS {
        assert_eq!(client.ask(&format!("Z0,{:x},2", 2 * index)), "OK");
    }
    assert_eq!(client.ask("Z0,ffff0,2"), "E16");
    assert_eq!(client.ask("z0,ffff0,2"), "E16");
}

#[test]
fn watchpoints_report_the_address_of_stores_and_loads() {
    let file = compiled(SOURCE);
    let counter = symbol(&file, "counter");
    for (kind, name) in [(2, "watch"), (3, "rwatch"), (4, "awatch")] {
        let mut client = Client::of(&file);
        let add = symbol(&file, "add");
        client.ask(&format!("Z0,{add:x},2"));
        client.go("c");
        client.ask(&format!("z0,{add:x},2"));
        assert_eq!(client.ask(&format!("Z{kind},{counter:x},4")), "OK");
        let report = client.go("c");
        assert!(report.contains(&format!(";{name}:{counter:x}")), "{report}");
        let value = client.ask(&format!("m{counter:x},4"));
        assert_eq!(value, if kind == 2 { "01000000" } else { "00000000" });
        assert_eq!(client.ask(&format!("z{kind},{counter:x},4")), "OK");
        assert_eq!(client.go("c"), "W07");
    }
}

#[test]
fn range_step_leaves_the_range() {
    let file = compiled(SOURCE);
    let main = symbol(&file, "main");
    let mut client = Client::of(&file);
    client.ask(&format!("Z0,{main:x},2"));
    client.go("c");
    // To the call of `add`, which is outside.
    assert_eq!(client.go(&format!("vCont;r{main:x},{:x}:p1.1", main + 0x40)), "S05");
    assert_eq!(client.register(15), symbol(&file, "add"));
}

#[test]
fn registers_and_memory_are_written() {
    let file = compiled(SOURCE);
    let (add, table) = (symbol(&file, "add"), symbol(&file, "table"));
    let mut client = Client::of(&file);
    client.ask(&format!("Z0,{add:x},2"));
    client.go("c");
    // The first number to add becomes 2.
    assert_eq!(client.ask("P0=02000000"), "OK");
    assert_eq!(client.register(0), 2);
    let all = client.ask("g");
    assert_eq!(all.len(), 23 * 8);
    assert_eq!(client.ask(&format!("G{all}")), "OK");
    assert_eq!(client.ask("g"), all);
    assert_eq!(client.ask(&format!("m{table:x},10")), "01000000020000000300000004000000");
    assert_eq!(client.ask(&format!("M{:x},4:2a000000", table + 4)), "OK");
    assert_eq!(client.ask(&format!("m{table:x},8")), "010000002a000000");
    client.ask(&format!("z0,{add:x},2"));
    assert_eq!(client.go("c"), "W01", "the sum is another");
}

#[test]
fn code_that_is_written_is_executed() {
    let file = compiled(SOURCE);
    let add = symbol(&file, "add");
    let mut client = Client::of(&file);
    client.ask(&format!("Z0,{add:x},2"));
    client.go("c");
    // movs r0, #15; bx lr
    assert_eq!(client.ask(&format!("M{add:x},4:0f207047")), "OK");
    client.ask(&format!("z0,{add:x},2"));
    assert_eq!(client.go("c"), "W07");
}

#[test]
fn system_registers_are_read_without_effects_and_written() {
    let mut client = Client::of(&compiled(SOURCE));
    assert_eq!(client.ask("me000ed00,4"), "31c22f41", "CPUID");
    assert_eq!(client.ask("Me000e014,4:ff000000"), "OK");
    assert_eq!(client.ask("me000e014,4"), "ff000000");
    assert_eq!(client.ask("Me000e014,1:ff"), "E0e", "whole words");
}

#[test]
fn unmapped_memory_and_ports_are_refused() {
    let mut client = Client::of(&compiled(SOURCE));
    for packet in ["m60000000,4", "mf0000100,4", "M60000000,1:00", "Mf0000000,4:00000000"] {
        assert_eq!(client.ask(packet), "E0e", "{packet}");
    }
    // Up to the end of the memory, which follows itself as its mirror.
    assert_eq!(client.ask("m207ffffe,10").len(), 4);
    assert_eq!(client.ask("mffffffff,ffffffffffff"), "E0e");
    assert!(client.ask("m20000000,ffffffffffff").len() <= 0x4000);
}

#[test]
fn flash_is_erased_and_written_within_its_memory() {
    let mut client = Client::of(&compiled(SOURCE));
    assert_eq!(client.ask("vFlashErase:00100000,00000400"), "OK");
    assert_eq!(client.ask("m1003fe,4"), "ffff0000");
    assert_eq!(client.ask("vFlashWrite:00100000:abcd"), "OK");
    assert_eq!(client.ask("vFlashDone"), "OK");
    assert_eq!(client.ask("m100000,5"), "61626364ff");
    assert_eq!(client.ask("vFlashErase:007ffc00,00000800"), "E0e");
    assert_eq!(client.ask("vFlashErase:00000000,ffffffff"), "E0e");
    assert_eq!(client.ask("vFlashWrite:60000000:abcd"), "E0e");
}

#[test]
fn faults_and_other_stops_are_signals_with_the_reason_on_the_console() {
    for (end, signal, words) in [
        ("UNDEFINED", "S04", "undefined instruction"),
        ("WILD_JUMP", "S0b", "wild jump to 0x30000000"),
        ("LOAD_FROM_NOTHING", "S0b", "load from 0x60000000"),
        ("STACK_OVERFLOW", "S0b", "stack overflow"),
        ("DIVISION", "S08", "division by zero"),
        ("ASLEEP", "S05", "asleep forever"),
        ("RESET", "S05", "requested a reset"),
        ("NO_SUCH_CALL", "S0c", "unsupported semihosting call 0x77"),
        ("BREAKPOINT", "S05", "BKPT 3"),
    ] {
        let mut client = Client::of(&ends(end));
        client.send("c");
        let (report, console) = client.until_stopped();
        assert_eq!(report, signal, "{end}");
        assert!(console.contains(words), "{end}: {console}");
        assert!(client.monitor("why").contains(words), "{end}");
        assert_eq!(*client.debugger.state(), State::Halted, "{end}");
    }
}

#[test]
fn instruction_limit_stops_an_endless_loop() {
    let mut client = Client::with_limit(&ends("ENDLESS"), 5000);
    client.send("c");
    let (report, console) = client.until_stopped();
    assert_eq!(report, "S18");
    assert!(console.contains("still running after 5000 instructions"), "{console}");
}

#[test]
fn run_goes_on_behind_a_breakpoint_of_the_program() {
    let mut client = Client::of(&ends("BREAKPOINT"));
    assert_eq!(client.go("c"), "S05");
    assert_eq!(client.go("c"), "W00");
}

#[test]
fn ctrl_c_stops_a_running_program_and_not_a_halted_one() {
    let mut client = Client::of(&ends("ENDLESS"));
    client.debugger.receive(b"\x03");
    client.send("c");
    client.debugger.run(1000);
    assert_eq!(client.answer(), None, "it runs");
    assert_eq!(*client.debugger.state(), State::Running);
    client.debugger.receive(b"\x03");
    assert_eq!(client.answer().as_deref(), Some("S02"));
    assert_eq!(*client.debugger.state(), State::Halted);
}

#[test]
fn kill_ends_the_run() {
    for (kill, answer) in [("k", None), ("vKill;1", Some("OK"))] {
        let mut client = Client::of(&ends("ENDLESS"));
        client.send(kill);
        assert_eq!(client.answer().as_deref(), answer, "{kill}");
        assert_eq!(*client.debugger.state(), State::Ended(Stop::Killed), "{kill}");
    }
}

#[test]
fn lost_client_leaves_the_program_halted_without_breakpoints() {
    let file = compiled(SOURCE);
    let add = symbol(&file, "add");
    let mut client = Client::of(&file);
    client.ask(&format!("Z0,{add:x},2"));
    client.go("c");
    client.debugger.disconnected();
    client.debugger.run(1000);
    assert_eq!(*client.debugger.state(), State::Halted);
    client.debugger.connected();
    assert_eq!(client.register(15), add);
    assert_eq!(client.go("c"), "W07");
}

#[test]
fn reset_begins_anew_and_counts_from_zero() {
    let file = compiled(SOURCE);
    let mut client = Client::of(&file);
    let (start, add) = (client.register(15), symbol(&file, "add"));
    client.ask(&format!("Z0,{add:x},2"));
    client.go("c");
    let first = client.monitor("cycles");
    assert!(first.contains("cycles") && !first.starts_with("0 "), "{first}");
    assert!(client.monitor("reset").starts_with("reset"));
    assert_eq!(client.register(15), start);
    assert_eq!(client.monitor("cycles"), "0 cycles, 0 instructions since reset\n");
    client.go("c");
    assert_eq!(client.monitor("cycles"), first);
    assert!(client.monitor("bogus").contains("monitor reset"));
}

#[test]
fn malformed_packet_ends_the_connection_and_not_the_program() {
    let mut client = Client::of(&compiled(SOURCE));
    let endless = [b"$".as_slice(), &[b'a'; 2 * PACKET_BYTES]].concat();
    for sent in [packet(b"m,"), b"$g#00".to_vec(), endless] {
        client.debugger.receive(&sent);
        assert!(!client.debugger.is_connected());
        assert!(client.debugger.take_problem().is_some());
        client.debugger.receive(b"$c#63");
        assert_eq!(*client.debugger.state(), State::Halted);
        client.debugger.connected();
    }
    assert_eq!(client.go("c"), "W07");
}
