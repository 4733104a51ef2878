// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs an ELF file and prints the speed:
//! `cargo run --release -p warifu-m3 --example run -- FILE [CHIP]`.

use std::io::Write;
use std::time::Instant;

use warifu_m3::chip::Chip;
use warifu_m3::machine::{Limits, Machine};
use warifu_m3::program::Program;
use warifu_m3::timing::Rules;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: run FILE [CHIP]")?;
    let chip: Chip = arguments.next().as_deref().unwrap_or("mps2-an385").parse()?;
    let program = Program::parse(&std::fs::read(file)?)?;
    let mut machine = Machine::new(&chip, Rules::cortex_m3()?)?;
    program.load(&mut machine, &chip)?;
    let start = Instant::now();
    let stop = machine.run(Limits { instructions: 20_000_000_000 });
    let seconds = start.elapsed().as_secs_f64();
    std::io::stdout().write_all(&machine.semihosting.output)?;
    let millions = machine.instructions as f64 / 1e6;
    println!(
        "{stop}; {millions:.1} M instructions, {} cycles, {:.1} M/s",
        machine.core.clock,
        millions / seconds
    );
    Ok(())
}
