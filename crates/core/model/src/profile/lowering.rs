// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From a message to primitives: a recipe's calls at a device's figures, and the instructions
//! beside them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;

use super::band::{Band, BandOf};
use super::device::{Cost, DeviceProfile, Entry};
use super::figure::{FigureOf, Input, Provenance};
use super::rate::Rate;
use super::recipe::{CallCount, Recipe, RecipeProfile};
use super::shown::Shown;
use super::stand_in::{Priced, price};
use crate::case::Tls;
use crate::distribution::Distribution;
use crate::kind::Kind;
use crate::primitive::{Primitive, SignatureAlgorithm};
use crate::units::Nanos;

/// What takes longer than 104 days is a mistake in a recipe or a figure.
const MOST_NS: f64 = 9_007_199_254_740_992.0;

/// What a message was lowered to.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered<'a> {
    /// The library whose recipe it is; `None` for a signature without a recipe, which is the call
    /// of its algorithm alone.
    pub recipe: Option<&'a str>,
    /// The calls, in the recipe's order.
    pub parts: Vec<LoweredPart>,
    /// What the instructions outside of the calls take, ns.
    pub remainder_ns: f64,
}

/// Calls of one primitive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoweredPart {
    /// What is called.
    pub primitive: Primitive,
    /// Whose figure was taken: the same, or what stands in for it by its definition.
    pub figure: Primitive,
    /// What the stand-in is at best, whatever its figure; `None` where it is its own figure.
    pub stand_in: Option<Kind>,
    /// Calls of the figure.
    pub calls: u32,
    /// Bytes over all calls; the number of instructions where the figure is of one.
    pub bytes: f64,
    /// All of them with warm caches, ns: the mean, or a band in its middle.
    pub warm_ns: f64,
    /// The same with cold caches, ns.
    pub cold_ns: f64,
}

/// Why a recipe gives no cost.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NotLowered {
    /// The device has no figure of these, and nothing that stands for them.
    Missing(Vec<Primitive>),
    /// The sum is beyond all measure; most of it is this figure's.
    TooLong(Primitive),
}

impl LoweredPart {
    /// Whether it is priced by the instruction, since the device has no figure of it.
    pub fn is_of_instructions(&self) -> bool {
        self.figure == Primitive::Instruction
    }

    /// What stands in, as an input of its own beside the figure that it takes.
    pub(super) fn input(&self, device: &DeviceProfile) -> Option<Input> {
        let kind = self.stand_in?;
        let by = match self.figure {
            Primitive::Instruction => "the instructions that its code takes".to_owned(),
            figure => figure.to_string(),
        };
        let provenance = Provenance {
            source: Some("no figure of its own: what it is made of by its definition".into()),
            kind,
            run_id: None,
        };
        let key = (device.name.as_str(), &*self.primitive.to_string());
        let shown = Shown::word(format!("by {by}"));
        Some(provenance.input(FigureOf::Device, key, shown, ""))
    }
}

impl Lowered<'_> {
    /// All parts and the remainder with warm caches, ns.
    pub fn warm_ns(&self) -> f64 {
        self.remainder_ns + self.parts.iter().map(|part| part.warm_ns).sum::<f64>()
    }

    /// The share of instructions in that, from 0 to 1: of the remainder, and of primitives that
    /// a device has no figure of and that were counted in instructions.
    pub fn remainder_share(&self) -> f64 {
        let all = self.warm_ns();
        if all > 0.0 { self.instructions_ns() / all } else { 0.0 }
    }

    /// What is priced by the instruction, ns.
    pub fn instructions_ns(&self) -> f64 {
        let counted = self.parts.iter().filter(|part| part.is_of_instructions());
        self.remainder_ns + counted.map(|part| part.warm_ns).sum::<f64>()
    }
}

/// The cost of a message by a recipe.
pub(super) fn lower<'a>(
    device: &'a DeviceProfile,
    library: &'a RecipeProfile,
    recipe: &'a Recipe,
    tls: &Tls,
    bytes: u32,
) -> Result<Cost<'a>, NotLowered> {
    let counted = |wanted: CallCount| {
        price(device, library.primitives.get(&wanted.primitive).copied(), wanted)
    };
    let calls = recipe.counts(tls, library.record_bytes, bytes);
    let mut missing = Vec::new();
    let mut priced = Vec::new();
    for call in calls {
        match counted(call) {
            Some(found) => priced.push((call.primitive, found)),
            None if missing.contains(&call.primitive) => {}
            None => missing.push(call.primitive),
        }
    }
    let instructions = recipe.instructions.fixed + recipe.instructions.per_byte * f64::from(bytes);
    let mut kind = recipe.provenance.kind;
    let mut remainder = None;
    if instructions > 0.0 {
        match device.primitives.get(&Primitive::Instruction) {
            Some(entry) => {
                remainder = Some((entry, instructions));
                kind = kind.max(entry.provenance.kind);
            }
            None => missing.push(Primitive::Instruction),
        }
    }
    if !missing.is_empty() {
        return Err(NotLowered::Missing(missing));
    }
    let mut cost = sum(device, &priced, remainder)?;
    cost.kind = cost.kind.max(kind);
    cost.source = recipe.provenance.source.as_deref();
    if let Some(lowered) = &mut cost.lowered {
        lowered.recipe = Some(&library.name);
    }
    Ok(cost)
}

/// A signature is a call of its algorithm, where no recipe says more.
pub(super) fn signature<'a>(device: &'a DeviceProfile, tls: &Tls) -> Result<Cost<'a>, NotLowered> {
    let primitive = Primitive::Sign(SignatureAlgorithm::Certificate(tls.certificate));
    let wanted = CallCount { primitive, calls: 1, bytes: 0.0 };
    let priced = price(device, None, wanted).ok_or(NotLowered::Missing(vec![primitive]))?;
    let mut cost = sum(device, &[(primitive, priced)], None)?;
    cost.source = priced.entry.provenance.source.as_deref();
    cost.run_id = priced.entry.provenance.run_id.as_deref();
    Ok(cost)
}

/// The calls together, each drawn by itself; their bytes and the instructions beside them, of which
/// one takes as long as another; and the bands of figures that are assumed.
fn sum<'a>(
    device: &'a DeviceProfile,
    priced: &[(Primitive, Priced<'a>)],
    remainder: Option<(&'a Entry, f64)>,
) -> Result<Cost<'a>, NotLowered> {
    let mut parts = Vec::with_capacity(priced.len());
    let mut kind = Kind::Measured;
    let remainder_ns = remainder.map_or(0.0, |(entry, count)| entry.byte_ns() * count);
    for &(primitive, Priced { figure, entry, calls, bytes, kind: at_best }) in priced {
        let all = |cold| entry.call_ns(cold) * f64::from(calls) + entry.byte_ns() * bytes;
        let (warm_ns, cold_ns) = (all(false), all(true));
        let stand_in = (figure != primitive).then_some(at_best);
        parts.push(LoweredPart { primitive, figure, stand_in, calls, bytes, warm_ns, cold_ns });
        kind = kind.max(entry.provenance.kind).max(at_best);
    }
    let lowered = Lowered { recipe: None, parts, remainder_ns };
    let times = lowered.parts.iter().map(|part| (part.warm_ns.max(part.cold_ns), part.figure));
    let mut times: Vec<(f64, Primitive)> = times.collect();
    times.push((remainder_ns, Primitive::Instruction));
    // What is no number is refused as well.
    if !(0.0..=MOST_NS).contains(&times.iter().map(|(ns, _)| ns).sum()) {
        let most = times.iter().max_by(|a, b| a.0.total_cmp(&b.0));
        return Err(NotLowered::TooLong(most.map_or(Primitive::Instruction, |(_, of)| *of)));
    }
    let of_calls = priced.iter().map(|&(_, Priced { figure, entry, calls, bytes, .. })| Figure {
        of: figure,
        entry,
        calls,
        bytes,
    });
    let of_instructions = remainder.map(|(entry, count)| Figure {
        of: Primitive::Instruction,
        entry,
        calls: 0,
        bytes: count,
    });
    let mut bytes_ns = 0.0;
    let mut varying: Vec<OfBytes<'_>> = Vec::new();
    let mut assumed: Vec<Figure<'_>> = Vec::new();
    for figure in of_calls.chain(of_instructions) {
        let (of, rate) = (figure.of, &figure.entry.per_byte);
        if figure.entry.is_band() {
            match assumed.iter_mut().find(|before| before.of == of) {
                Some(before) => before.add(&figure),
                None => assumed.push(figure),
            }
        } else if rate.is_constant() {
            bytes_ns += rate.mean_ns() * figure.bytes;
        } else if let Some((.., before)) = varying.iter_mut().find(|(before, ..)| *before == of) {
            *before += figure.bytes;
        } else {
            varying.push((of, rate, figure.bytes));
        }
    }
    let [warm, cold] = [false, true].map(|cold| device.sums.of(priced, &varying, cold));
    let bands: Vec<Band> = assumed.iter().map(Figure::band).collect();
    let beyond = |band: &Band| band.warm.max().max(band.cold.max()).0 as f64 > MOST_NS;
    if let Some((_, figure)) = bands.iter().zip(&assumed).find(|(band, _)| beyond(band)) {
        return Err(NotLowered::TooLong(figure.of));
    }
    Ok(Cost {
        warm: Cow::Owned(warm),
        cold: Cow::Owned(cold),
        bands,
        per_byte_ns: 0.0,
        bytes_cost: Nanos(bytes_ns.round() as u64),
        cipher: None,
        source: None,
        kind,
        run_id: None,
        lowered: Some(lowered),
    })
}

/// All calls and bytes of a figure, or all instructions.
struct Figure<'a> {
    of: Primitive,
    entry: &'a Entry,
    calls: u32,
    bytes: f64,
}

impl Figure<'_> {
    fn add(&mut self, more: &Figure<'_>) {
        self.calls = self.calls.saturating_add(more.calls);
        self.bytes += more.bytes;
    }

    fn band(&self) -> Band {
        self.entry.band(BandOf::Primitive(self.of), self.calls, self.bytes)
    }
}

/// The laws of sums that were asked for before: a study of many cases asks for a few again and
/// again, and adding laws takes a thousand times longer than adding numbers.
#[derive(Default)]
pub(super) struct Sums(Mutex<HashMap<Terms, Distribution>>);

/// What so many bytes of a figure take, or so many instructions.
type OfBytes<'a> = (Primitive, &'a Rate, f64);

/// Figures with the number of their calls; those whose bytes have a law, with the number of the
/// bytes (its bits, since numbers with a fraction are no keys); and whether cold laws are meant.
type Terms = (Vec<(Primitive, u32)>, Vec<(Primitive, u64)>, bool);

/// Sums that are kept, so that no study fills the memory.
const MOST_KEPT: usize = 10_000;

impl Sums {
    /// The law of all calls that vary by themselves, and of those bytes that do.
    fn of(
        &self,
        priced: &[(Primitive, Priced<'_>)],
        bytes: &[OfBytes<'_>],
        cold: bool,
    ) -> Distribution {
        let law = |priced: &Priced<'_>| priced.entry.law(cold).clone();
        let varies = |priced: &Priced<'_>| {
            let law = priced.entry.law(cold);
            law.min() != law.max()
        };
        let counts = |priced: &Priced<'_>| priced.calls > 0 && !priced.entry.is_band();
        let calls = priced.iter().filter(|(_, priced)| counts(priced));
        let of_bytes = bytes.iter().map(|(_, rate, count)| (rate.law(*count), 1));
        let laws: Vec<(Distribution, u32)> =
            calls.clone().map(|(_, priced)| (law(priced), priced.calls)).chain(of_bytes).collect();
        let add = || {
            let terms: Vec<(&Distribution, u32)> =
                laws.iter().map(|(law, count)| (law, *count)).collect();
            Distribution::sum_of_independent(&terms)
        };
        if bytes.is_empty() && !calls.clone().any(|(_, priced)| varies(priced)) {
            return add();
        }
        let mut terms: Vec<(Primitive, u32)> =
            calls.map(|(_, priced)| (priced.figure, priced.calls)).collect();
        terms.sort_unstable();
        let mut of_bytes: Vec<(Primitive, u64)> =
            bytes.iter().map(|(figure, _, count)| (*figure, count.to_bits())).collect();
        of_bytes.sort_unstable();
        let key = (terms, of_bytes, cold);
        // Another thread's panic leaves whole entries behind.
        let mut known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(law) = known.get(&key) {
            return law.clone();
        }
        let law = add();
        if known.len() < MOST_KEPT {
            known.insert(key, law.clone());
        }
        law
    }
}

/// What was kept says nothing of a profile.
impl fmt::Debug for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sums")
    }
}

impl Clone for Sums {
    fn clone(&self) -> Sums {
        Sums::default()
    }
}
