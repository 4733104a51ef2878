// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What operations cost on a device: its own figure, else its library's recipe.

use super::band::BandOf;
use super::catalog::{Catalog, ProfileKind};
use super::cipher::{self, CipherCost};
use super::condition::{Choice, Condition, Mismatch};
use super::dependence;
use super::device::{Cost, DeviceProfile, Entry};
use super::figure::{FigureOf, Input};
use super::lowering::{self, NotLowered};
use super::recipe::{Recipe, RecipeProfile};
use super::shown::{Show, Shown};
use crate::case::Stack;
use crate::error::Error;
use crate::operation::Operation;
use crate::primitive::{Primitive, SignatureAlgorithm};
use crate::units::Nanos;

/// How many names of a list a message gives.
const NAMED: usize = 3;

/// A device's costs, with its library's recipes.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'a> {
    device: &'a DeviceProfile,
    recipes: Option<&'a RecipeProfile>,
    catalog: Option<&'a Catalog>,
}

/// Where an operation's cost comes from.
enum Found<'a> {
    Own(&'a Entry),
    Recipe(&'a RecipeProfile, &'a Recipe),
    /// Neither, but the call of its algorithm is all that a signature is.
    Signature,
    Nothing,
}

impl Catalog {
    /// The costs of a device, with its library's recipes.
    pub fn costs(&self, device: &str) -> Option<Costs<'_>> {
        let device = self.device(device)?;
        let library = device.machine.library.as_deref();
        let recipes = library.and_then(|library| self.recipe(library));
        Some(Costs { device, recipes, catalog: Some(self) })
    }
}

impl<'a> Costs<'a> {
    /// Those of its own figures alone.
    pub fn own(device: &'a DeviceProfile) -> Costs<'a> {
        Costs { device, recipes: None, catalog: None }
    }

    /// Those of a connection that begins after a pause without any, see
    /// [`DeviceProfile::after_pause`].
    pub fn after_pause(self, pause: Option<Nanos>) -> Costs<'a> {
        Costs { device: self.device.after_pause(pause), ..self }
    }

    /// The device's profile.
    pub fn device(&self) -> &'a DeviceProfile {
        self.device
    }

    /// The cost of an operation in a stack: of the profile's entries whose conditions hold, the one
    /// with the most conditions; without any, the sum of what its library's recipe calls. `bytes`
    /// are those of the message.
    ///
    /// # Errors
    /// There is neither; or two with equally many conditions; or the profile has no figure of a
    /// call.
    pub fn cost(&self, operation: Operation, stack: &Stack, bytes: u32) -> Result<Cost<'a>, Error> {
        let lowered = match self.find(operation, stack)? {
            Found::Own(entry) => return self.with_cipher(entry, operation, stack, bytes),
            Found::Recipe(library, recipe) => {
                let tls = stack.tls().ok_or_else(|| self.missing(&[operation], stack))?;
                lowering::lower(self.device, library, recipe, tls, bytes)
            }
            Found::Signature => {
                let tls = stack.tls().ok_or_else(|| self.missing(&[operation], stack))?;
                lowering::signature(self.device, tls)
            }
            Found::Nothing => return Err(self.missing(&[operation], stack)),
        };
        lowered.map_err(|why| match why {
            NotLowered::Missing(_) => self.missing(&[operation], stack),
            NotLowered::TooLong(figure) => {
                let recipe = self.recipes.map_or(String::new(), |recipes| {
                    format!(", or the calls and instructions in {}", recipes.file)
                });
                let message =
                    format!("makes {operation} take more than 100 days: check its time{recipe}");
                Error::new(&self.device.file, figure.to_string(), message)
            }
        })
    }

    /// The figures that apply to a stack, of those operations that `uses` asks for.
    pub(crate) fn inputs(&self, stack: &Stack, uses: impl Fn(Operation) -> bool) -> Vec<Input> {
        let of = FigureOf::Device;
        let mut inputs = Vec::new();
        let figure = |primitive: Primitive| {
            let entry = self.device.primitives.get(&primitive)?;
            let (key, unit) = (primitive.to_string(), "ns");
            let shown = match primitive {
                Primitive::Instruction => Shown::word(entry.per_byte.shown()),
                _ => entry.shown(),
            };
            Some(entry.provenance.input(of, (&self.device.name, &key), shown, unit))
        };
        for operation in self.operations().filter(|&operation| uses(operation)) {
            match self.find(operation, stack) {
                Ok(Found::Own(entry)) => {
                    let key = (self.device.name.as_str(), &*operation.to_string());
                    inputs.push(entry.provenance.input(of, key, entry.shown(), "ns"));
                    for call in cipher::calls(operation, stack, 0) {
                        let stand_in = self.device.stand_in(call);
                        inputs.extend(stand_in.and_then(|(primitive, _)| figure(primitive)));
                    }
                }
                Ok(Found::Recipe(library, recipe)) => {
                    // Whether there are bytes or not, the calls are the same.
                    let Some(tls) = stack.tls() else { continue };
                    let lowered = lowering::lower(self.device, library, recipe, tls, 1);
                    let Some(lowered) = lowered.ok().and_then(|cost| cost.lowered) else {
                        continue;
                    };
                    let key = (library.name.as_str(), &*operation.to_string());
                    let shown = Shown::word(recipe.shown.as_str());
                    inputs.push(recipe.provenance.input(FigureOf::Recipe, key, shown, ""));
                    let remainder = (lowered.remainder_ns > 0.0).then_some(Primitive::Instruction);
                    let figures = lowered.parts.iter().map(|part| part.figure);
                    inputs.extend(figures.chain(remainder).filter_map(figure));
                    inputs.extend(lowered.parts.iter().filter_map(|part| part.input(self.device)));
                }
                Ok(Found::Signature) => {
                    let Ok(cost) = self.cost(operation, stack, 1) else { continue };
                    let parts = cost.lowered.map(|lowered| lowered.parts).unwrap_or_default();
                    inputs.extend(parts.iter().filter_map(|part| figure(part.figure)));
                    inputs.extend(parts.iter().filter_map(|part| part.input(self.device)));
                }
                Ok(Found::Nothing) | Err(_) => {}
            }
        }
        let speed = self.device.speed.as_ref();
        inputs.extend(speed.into_iter().flat_map(|speed| speed.inputs(&self.device.name)));
        let cold = |entry: &Entry| entry.cold.is_some();
        let of_calls = self.recipes.is_some() && self.device.primitives.values().any(cold);
        if of_calls || self.device.entries.values().flatten().any(cold) {
            let (key, value) = ("idle_threshold", self.device.idle_threshold.shown("ns"));
            let owner = (self.device.name.as_str(), key);
            inputs.push(self.device.idle_provenance.input(of, owner, value, "ns"));
        }
        inputs
    }

    /// What it lacks of these operations for a stack, all of it in one error.
    pub fn lacks(&self, operations: &[Operation], stack: &Stack) -> Option<Error> {
        let refused = operations.iter().find_map(|&of| self.find(of, stack).err());
        let missing = self.missing_operations(operations, stack);
        refused.or_else(|| (!missing.is_empty()).then(|| self.missing(&missing, stack)))
    }

    /// Which of these operations have no cost for a stack, each once.
    pub fn missing_operations(&self, operations: &[Operation], stack: &Stack) -> Vec<Operation> {
        let mut missing: Vec<Operation> = Vec::new();
        for &operation in operations {
            let has = !matches!(self.find(operation, stack), Ok(Found::Nothing) | Err(_))
                && self.missing_primitives(&[operation], stack).is_empty();
            if !has && !missing.contains(&operation) {
                missing.push(operation);
            }
        }
        missing
    }

    /// Which primitives these operations call that nothing in the profile stands for, each once.
    pub fn missing_primitives(&self, operations: &[Operation], stack: &Stack) -> Vec<Primitive> {
        let mut missing = Vec::new();
        for &operation in operations {
            for primitive in self.missing_of(operation, stack) {
                if !missing.contains(&primitive) {
                    missing.push(primitive);
                }
            }
        }
        missing
    }

    fn missing_of(&self, operation: Operation, stack: &Stack) -> Vec<Primitive> {
        let lowered = match (self.find(operation, stack), stack.tls()) {
            (Ok(Found::Recipe(library, recipe)), Some(tls)) => {
                lowering::lower(self.device, library, recipe, tls, 1)
            }
            (Ok(Found::Signature), Some(tls)) => lowering::signature(self.device, tls),
            _ => {
                let calls = cipher::calls(operation, stack, 0).into_iter();
                let lacks = calls.filter(|call| self.device.stand_in(*call).is_none());
                return lacks.map(|call| call.primitive).collect();
            }
        };
        match lowered {
            Err(NotLowered::Missing(primitives)) => primitives,
            _ => Vec::new(),
        }
    }

    /// Every operation that it may have a cost of.
    fn operations(&self) -> impl Iterator<Item = Operation> + '_ {
        let recipes = self.recipes.is_some() || !self.device.primitives.is_empty();
        Operation::all().filter(move |operation| {
            recipes && matches!(operation, Operation::Tls(..) | Operation::Sign(_))
                || self.device.entries.contains_key(operation)
        })
    }

    fn find(&self, operation: Operation, stack: &Stack) -> Result<Found<'a>, Error> {
        let point = Condition::point(stack);
        let entries = self.device.entries.get(&operation).map_or(&[][..], Vec::as_slice);
        let twice = |file: &str, what: &str, when: &Condition| {
            let message = format!(
                "has two {what} for {point} with equally many conditions ({when}): add a \
                 condition to the one that should win"
            );
            Error::new(file, operation.to_string(), message)
        };
        let own = most_specific(entries, |entry| &entry.when, &point)
            .map_err(|entry| twice(&self.device.file, "costs", &entry.when))?;
        if let Some(entry) = own {
            let needed = dependence::choices(operation, stack).iter();
            let unsaid: Vec<Choice> = needed.filter(|&of| !entry.when.says(of)).collect();
            if unsaid.is_empty() {
                return Ok(Found::Own(entry));
            }
            return Err(self.silent(operation, &unsaid, stack));
        }
        if let Some(library) = self.recipes {
            let recipes = library.recipes.get(&operation).map_or(&[][..], Vec::as_slice);
            let found = most_specific(recipes, |recipe| &recipe.when, &point)
                .map_err(|recipe| twice(&library.file, "recipes", &recipe.when))?;
            if let Some(recipe) = found {
                return Ok(Found::Recipe(library, recipe));
            }
        }
        let signs = |certificate| {
            let primitive = Primitive::Sign(SignatureAlgorithm::Certificate(certificate));
            self.recipes.is_some() || self.device.primitives.contains_key(&primitive)
        };
        match (operation, stack.tls()) {
            (Operation::Sign(_), Some(tls)) if signs(tls.certificate) => Ok(Found::Signature),
            _ => Ok(Found::Nothing),
        }
    }

    /// An entry that may be another algorithm's figure.
    fn silent(&self, operation: Operation, unsaid: &[Choice], stack: &Stack) -> Error {
        let keys: Vec<&str> = unsaid.iter().map(|choice| choice.key()).collect();
        let terms: Vec<String> = unsaid.iter().map(|choice| choice.of_stack(stack)).collect();
        let message = format!(
            "has a cost that says nothing of {}, on which it depends: add when = {{ {} }} to it \
             (or all words, where it was found to be the same), or calibrate the device again",
            keys.join(", "),
            terms.join(", ")
        );
        Error::new(&self.device.file, operation.to_string(), message)
    }

    /// An entry's cost, and what the cipher of a DDS protection takes beside it.
    fn with_cipher(
        &self,
        entry: &'a Entry,
        operation: Operation,
        stack: &Stack,
        bytes: u32,
    ) -> Result<Cost<'a>, Error> {
        let mut cost = entry.cost(BandOf::Operation(operation), bytes);
        for call in cipher::calls(operation, stack, bytes) {
            let (primitive, entry) =
                self.device.stand_in(call).ok_or_else(|| self.missing(&[operation], stack))?;
            let of_call = entry.cost(BandOf::Primitive(primitive), call.bytes);
            let before = cost.cipher.unwrap_or(CipherCost {
                primitive,
                warm: Nanos::ZERO,
                cold: Nanos::ZERO,
            });
            let with = |all: Nanos, cold| Nanos(all.0 + of_call.estimate_ns(cold).round() as u64);
            let (warm, cold) = (with(before.warm, false), with(before.cold, true));
            cost.cipher = Some(CipherCost { warm, cold, ..before });
        }
        Ok(cost)
    }

    /// Names what is missing, and what to change so that none of it is needed.
    fn missing(&self, operations: &[Operation], stack: &Stack) -> Error {
        let library = self.device.machine.library.as_deref();
        if let (Some(library), None, Some(catalog)) = (library, self.recipes, self.catalog) {
            let hint = catalog.hint(ProfileKind::Recipe, library);
            return Error::new(&self.device.file, "library", format!("is \"{library}\": {hint}"));
        }
        let primitives = self.missing_primitives(operations, stack);
        let has = |of: &Operation| !matches!(self.find(*of, stack), Ok(Found::Nothing) | Err(_));
        let without: Vec<Operation> = operations.iter().copied().filter(|of| !has(of)).collect();
        if without.is_empty() && !primitives.is_empty() {
            return self.missing_primitives_error(&primitives, operations, stack);
        }
        let mut error = self.missing_operations_error(&without, stack);
        if !primitives.is_empty() {
            error.message = format!("{}; the primitives {} too", error.message, few(&primitives));
        }
        error
    }

    fn missing_primitives_error(
        &self,
        primitives: &[Primitive],
        operations: &[Operation],
        stack: &Stack,
    ) -> Error {
        let point = Condition::point(stack);
        let (has, each) = match primitives.len() {
            1 => ("has", "a [[primitive]] of that name"),
            _ => ("have", "a [[primitive]] of each name"),
        };
        let taken_by = match (self.recipes, operations) {
            (Some(library), [operation]) => {
                format!("which {operation} takes by the recipes of {}", library.name)
            }
            (Some(library), _) => format!("which the recipes of {} take", library.name),
            (None, _) => format!("which {point} takes"),
        };
        let message = format!(
            "{has} no cost, {taken_by}: add {each} with its time a call and per_byte, or calibrate \
             the device{}",
            more(primitives.len())
        );
        Error::new(&self.device.file, few(primitives), message)
    }

    fn missing_operations_error(&self, operations: &[Operation], stack: &Stack) -> Error {
        let point = Condition::point(stack);
        let mut changes: Vec<String> = Vec::new();
        let mut must_be_added = false;
        for &operation in operations {
            let entries = self.device.entries.get(&operation).map_or(&[][..], Vec::as_slice);
            let nearest = entries
                .iter()
                .map(|entry| entry.when.mismatches(&point))
                .min_by_key(Vec::len)
                .map(|mismatches| mismatches.iter().map(Mismatch::hint).collect::<Vec<_>>());
            let hints = match nearest {
                Some(hints) => hints,
                None if operation.needs_client_certificate() => {
                    vec!["stack.authentication = \"server\"".into()]
                }
                None => {
                    must_be_added = true;
                    Vec::new()
                }
            };
            for hint in hints {
                if !changes.contains(&hint) {
                    changes.push(hint);
                }
            }
        }
        // What no change of the study avoids makes the other changes vain.
        let hint = match (must_be_added, operations.len()) {
            (false, _) => format!("use {}", changes.join(" and ")),
            (true, 1) => "add it to the profile".into(),
            (true, _) => "add them to the profile".into(),
        };
        let scope = self.device.scope.as_ref().map_or(String::new(), |scope| format!(" ({scope})"));
        let have = if operations.len() == 1 { "has" } else { "have" };
        let message = format!(
            "{have} no cost for {point}{scope}: {hint}, or calibrate the device{}{}",
            self.why_not_lowered(),
            more(operations.len())
        );
        Error::new(&self.device.file, few(operations), message)
    }

    /// Why a device's primitives do not help.
    fn why_not_lowered(&self) -> String {
        if let Some(recipes) = self.recipes {
            return format!("; the recipes of {} have none either", recipes.name);
        }
        let Some(primitive) = self.device.primitives.keys().next() else { return String::new() };
        let known = self.catalog.map(|catalog| catalog.names(ProfileKind::Recipe));
        let library = match known.as_deref() {
            Some([first, ..]) => format!("library = \"{first}\" or another whose recipes"),
            _ => "a library whose recipes".into(),
        };
        format!(
            "; its costs of primitives ({primitive} ..) say nothing of whole messages without \
             {library} lower them"
        )
    }
}

/// The item whose conditions hold at a point and are the most; the error is one of two with
/// equally many.
fn most_specific<'a, T>(
    items: &'a [T],
    when: impl Fn(&T) -> &Condition,
    point: &Condition,
) -> Result<Option<&'a T>, &'a T> {
    let mut best: Option<&T> = None;
    let mut twin = false;
    for item in items.iter().filter(|item| when(item).holds(point)) {
        let terms = best.map_or(0, |best| when(best).terms() + 1);
        match (when(item).terms() + 1).cmp(&terms) {
            std::cmp::Ordering::Greater => (best, twin) = (Some(item), false),
            std::cmp::Ordering::Equal => twin = true,
            std::cmp::Ordering::Less => {}
        }
    }
    match best {
        Some(item) if twin => Err(item),
        best => Ok(best),
    }
}

/// `a, b, c and 11 more`
fn few<T: ToString>(list: &[T]) -> String {
    let names: Vec<String> = list.iter().take(NAMED).map(ToString::to_string).collect();
    match list.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Where a list that was cut is to be had whole.
fn more(count: usize) -> &'static str {
    if count > NAMED { "; `warifu trace --costs` lists all of them" } else { "" }
}

#[cfg(test)]
mod tests;
