// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs an ELF file under taint, with variables poisoned at the start of `main`; prints leaks and
//! the speed: `cargo run --release -p warifu-m3 --example taint -- FILE [OBJECT...]`.

use std::io::Write;
use std::time::Instant;

use warifu_m3::chip::Chip;
use warifu_m3::machine::{Limits, Machine};
use warifu_m3::program::Program;
use warifu_m3::source::Source;
use warifu_m3::taint::{PoisonedBy, Report, Secret, Taint};
use warifu_m3::timing::Rules;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = std::fs::read(arguments.next().ok_or("usage: taint FILE [OBJECT...]")?)?;
    let chip: Chip = "mps2-an385".parse()?;
    let program = Program::parse(&file)?;
    let mut machine = Machine::new(&chip, Rules::cortex_m3()?)?;
    program.load(&mut machine, &chip)?;
    let mut taint = Taint::new(&machine);
    for name in arguments {
        let object = program.object(&name)?;
        let (address, bytes) = (object.address, object.bytes);
        let secret = Secret { address, bytes, by: PoisonedBy::Name(name) };
        taint.poison_when(program.label("main").unwrap_or(program.entry), secret);
    }
    let start = Instant::now();
    let stop = machine.run_observed(Limits { instructions: 20_000_000_000 }, &mut taint);
    let seconds = start.elapsed().as_secs_f64();
    std::io::stdout().write_all(&machine.semihosting.output)?;
    print!("{}", Report::new(&taint, &program, &Source::parse(&file)?));
    let millions = machine.instructions as f64 / 1e6;
    println!("{stop}; {millions:.1} M instructions, {:.1} M/s", millions / seconds);
    Ok(())
}
