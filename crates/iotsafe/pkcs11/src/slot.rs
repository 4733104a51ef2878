// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A slot: a card at one address, and its objects.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cryptoki_sys::*;
use warifu_iotsafe_client::{PinState, Token, TokenError, TokenInfo, TransportError};
use warifu_os::TurnQueue;

use crate::object::{Kind, Object};
use crate::object_table::{FileContent, ObjectTable};
use crate::rv::{Result, Rv, fail};
use crate::template::Template;

/// How long a card that did not answer is taken as absent: a program that polls the slots must not
/// wait for the timeout each time.
const ABSENCE: Duration = Duration::from_secs(2);

/// The fraction of a call's timeout that is reserved for the card: a call without a turn before
/// then fails. With less, a working card would miss the deadline and be taken as absent.
const CARD_FRACTION: u32 = 4;

/// Called with errors, each one line, for people.
pub type Reporter = Arc<dyn Fn(Report, &str) + Send + Sync>;

/// What a line for people is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// A card that cannot be used: of several default ones, one may be enough.
    Card,
    /// A call, whose return value does not say it.
    Call,
}

/// A slot.
pub struct Slot {
    /// Its number.
    pub id: CK_SLOT_ID,
    /// Where its card is, for people.
    pub location: String,
    /// The token's label, if it is configured.
    pub label: Option<String>,
    /// Whether the card hashes messages, rather than this module.
    pub card_hashes: bool,
    /// Whether an existing key pair may be replaced by generating another.
    pub replace_keys: bool,
    timeout: Duration,
    reporter: Reporter,
    turns: TurnQueue,
    token: Mutex<Box<dyn Token>>,
    known: Mutex<Known>,
    objects: Mutex<ObjectTable>,
    logged_in: AtomicBool,
    /// Whether a session was opened with the card there, by this process or by one that has forked
    /// it.
    was_used: AtomicBool,
}

/// The configuration of a slot.
pub struct SlotConfig {
    /// Where its card is, for people.
    pub location: String,
    /// The token's label, if it is configured.
    pub label: Option<String>,
    /// Whether the card hashes messages, rather than this module.
    pub card_hashes: bool,
    /// Whether an existing key pair may be replaced by generating another.
    pub replace_keys: bool,
    /// How long one call may take.
    pub timeout: Duration,
}

/// What the card last reported.
#[derive(Default)]
struct Known {
    info: Option<TokenInfo>,
    pin: Option<PinState>,
    /// When a call last ended without an answer; None after the next answer.
    silent_since: Option<Instant>,
}

impl Slot {
    /// A slot with a token; nothing is sent to it yet.
    #[must_use]
    pub fn new(
        id: CK_SLOT_ID,
        config: SlotConfig,
        token: Box<dyn Token>,
        reporter: Reporter,
    ) -> Slot {
        let SlotConfig { location, label, card_hashes, replace_keys, timeout } = config;
        Slot {
            id,
            location,
            label,
            card_hashes,
            replace_keys,
            timeout,
            reporter,
            turns: TurnQueue::default(),
            token: Mutex::new(token),
            known: Mutex::default(),
            objects: Mutex::default(),
            logged_in: AtomicBool::new(false),
            was_used: AtomicBool::new(false),
        }
    }

    /// Runs an operation on the token. Errors are reported; a card that was lost is logged out and
    /// its state forgotten.
    ///
    /// # Errors
    /// The return value for the token's error.
    pub fn with_token<T>(
        &self,
        call: impl FnOnce(&mut dyn Token, Instant) -> std::result::Result<T, TokenError>,
    ) -> Result<T> {
        let begin = Instant::now();
        let deadline = begin + self.timeout;
        let turn = self.turns.acquire_within(self.timeout - self.timeout / CARD_FRACTION);
        let result = match &turn {
            // A call that waited while the card did not answer another would get no answer either.
            Some(_) if !self.was_silent_after(begin) => {
                let result = call(lock(&self.token).as_mut(), deadline);
                self.update_state(&result);
                result
            }
            // The card was not asked: this changes nothing about its absence.
            _ => Err(TransportError::Timeout(self.location.clone()).into()),
        };
        // The turn ends here, so that the next one sees a card that was lost.
        drop(turn);
        result.map_err(|error| {
            if is_for_people(&error) {
                (self.reporter)(Report::Card, &format!("{}: {error}", self.location));
            }
            Rv::from(error)
        })
    }

    /// Reports a message that no return value can express.
    pub fn report(&self, message: &str) {
        (self.reporter)(Report::Call, &format!("{}: {message}", self.location));
    }

    fn is_absent(&self) -> bool {
        lock(&self.known).silent_since.is_some_and(|since| since.elapsed() < ABSENCE)
    }

    fn was_silent_after(&self, begin: Instant) -> bool {
        lock(&self.known).silent_since.is_some_and(|since| since > begin)
    }

    /// Updates the state of the card after an operation.
    fn update_state<T>(&self, result: &std::result::Result<T, TokenError>) {
        match result {
            Err(error @ TokenError::Transport(_)) => self.lost(error),
            // An error status is an answer too.
            _ => lock(&self.known).silent_since = None,
        }
    }

    fn lost(&self, error: &TokenError) {
        let mut known = lock(&self.known);
        *known = Known::default();
        if matches!(error, TokenError::Transport(TransportError::Timeout(_))) {
            known.silent_since = Some(Instant::now());
        }
        drop(known);
        self.logged_in.store(false, Ordering::Relaxed);
        lock(&self.objects).mark_outdated();
    }

    /// Information on the card.
    ///
    /// # Errors
    /// CKR_TOKEN_NOT_PRESENT, CKR_TOKEN_NOT_RECOGNIZED.
    pub fn info(&self) -> Result<TokenInfo> {
        if let Some(info) = &lock(&self.known).info {
            return Ok(info.clone());
        }
        if self.is_absent() {
            return fail(CKR_TOKEN_NOT_PRESENT);
        }
        let info =
            self.with_token(|token, deadline| token.info(deadline)).map_err(|rv| match rv {
                Rv(CKR_TOKEN_NOT_RECOGNIZED) => rv,
                Rv(_) => Rv(CKR_TOKEN_NOT_PRESENT),
            })?;
        lock(&self.known).info = Some(info.clone());
        Ok(info)
    }

    /// The state of the PIN, as last reported.
    ///
    /// # Errors
    /// As [`Slot::with_token`].
    pub fn pin_state(&self) -> Result<PinState> {
        let known = lock(&self.known).pin;
        known.map_or_else(|| self.read_pin_state(), Ok)
    }

    fn read_pin_state(&self) -> Result<PinState> {
        let pin = self.with_token(|token, deadline| token.pin_state(deadline))?;
        lock(&self.known).pin = Some(pin);
        Ok(pin)
    }

    /// Whether this process, or one that has forked it, has had a session with the card.
    #[must_use]
    pub fn was_used(&self) -> bool {
        self.was_used.load(Ordering::Relaxed)
    }

    /// It has now.
    pub fn mark_used(&self) {
        self.was_used.store(true, Ordering::Relaxed);
    }

    /// Whether the user is logged in.
    #[must_use]
    pub fn is_logged_in(&self) -> bool {
        self.logged_in.load(Ordering::Relaxed)
    }

    /// C_Login: sends the card its PIN, once. A card without a PIN accepts every login.
    ///
    /// # Errors
    /// CKR_PIN_INCORRECT, CKR_PIN_LOCKED, and as [`Slot::with_token`].
    pub fn log_in(&self, pin: &[u8]) -> Result {
        if self.is_logged_in() {
            return fail(CKR_USER_ALREADY_LOGGED_IN);
        }
        let pin_before = lock(&self.known).pin;
        let result = self.with_token(|token, deadline| match token.verify_pin(pin, deadline) {
            Err(TokenError::NoPin) => Ok(()),
            other => other,
        });
        // A wrong PIN has changed the number of tries.
        lock(&self.known).pin = match (&result, pin_before) {
            (Ok(()), Some(PinState::Absent)) => Some(PinState::Absent),
            (Ok(()), Some(_)) => Some(PinState::Verified),
            _ => None,
        };
        result?;
        self.logged_in.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// C_Logout, and the end of the last session. The card itself stays logged in until its reset.
    pub fn log_out(&self) {
        self.logged_in.store(false, Ordering::Relaxed);
    }

    /// The end of a session, which removes its objects. After the last session the state of the
    /// card is forgotten and its channel closed.
    pub fn end_of_session(&self, session: CK_SESSION_HANDLE, last: bool) {
        let free = lock(&self.objects).end_of_session(session);
        if !last {
            // The end of the last session gives back all that there are.
            free.iter().for_each(|container| self.give_back(container));
        }
        if last {
            self.log_out();
            lock(&self.objects).mark_outdated();
            lock(&self.known).pin = None;
            self.release();
        }
    }

    /// Frees a container for volatile keys, whose key was destroyed, for other callers of an agent.
    pub fn give_back(&self, container: &[u8]) {
        // Without an answer the agent is gone, and has nothing of ours in use.
        let _ = self.with_token(|token, deadline| token.give_back(container, deadline));
    }

    /// Closes the card's channel.
    pub fn release(&self) {
        self.release_by(Instant::now() + self.timeout);
    }

    /// Closes it if that is possible by the deadline.
    pub fn release_by(&self, deadline: Instant) {
        let within = deadline.saturating_duration_since(Instant::now());
        if let Some(_turn) = self.turns.acquire_within(within) {
            lock(&self.token).release(deadline);
        }
    }

    /// An object that the caller may see.
    ///
    /// # Errors
    /// `otherwise` for an invalid handle; CKR_USER_NOT_LOGGED_IN for a private object.
    pub fn object(&self, handle: CK_OBJECT_HANDLE, otherwise: CK_RV) -> Result<Arc<Object>> {
        let object = lock(&self.objects).get(handle).ok_or(Rv(otherwise))?;
        if object.private && !self.is_logged_in() {
            return fail(CKR_USER_NOT_LOGGED_IN);
        }
        Ok(object)
    }

    /// The handles of the visible objects that match a template.
    ///
    /// # Errors
    /// As [`Slot::with_token`].
    pub fn find(&self, template: &Template) -> Result<Vec<CK_OBJECT_HANDLE>> {
        let class = template.number(CKA_CLASS).ok().flatten();
        self.load(class)?;
        let logged_in = self.is_logged_in();
        let all = lock(&self.objects).all();
        let mut found = Vec::new();
        for (handle, object) in all {
            if class.is_some_and(|class| class != object.class()) || (object.private && !logged_in)
            {
                continue;
            }
            for (kind, _) in template.iter() {
                self.prepare(&object, kind)?;
            }
            if object.matches(template) {
                found.push(handle);
            }
        }
        Ok(found)
    }

    /// Reads from the card what an attribute needs.
    ///
    /// # Errors
    /// As [`Slot::with_token`].
    pub fn prepare(&self, object: &Object, kind: CK_ATTRIBUTE_TYPE) -> Result {
        let Kind::PublicKey(key) = &object.kind else { return Ok(()) };
        let Some(card_id) = &key.card_id else { return Ok(()) };
        let needs_point = matches!(kind, CKA_EC_POINT | CKA_PUBLIC_KEY_INFO);
        if needs_point && key.point.get().is_none() {
            let point =
                self.with_token(|token, deadline| token.read_public_key(card_id, deadline))?;
            let _ = key.point.set(point); // another thread may have read it too
        }
        Ok(())
    }

    /// The point of a public key.
    ///
    /// # Errors
    /// As [`Slot::with_token`].
    pub fn point_of(&self, object: &Object) -> Result<[u8; 65]> {
        self.prepare(object, CKA_EC_POINT)?;
        match &object.kind {
            Kind::PublicKey(key) => key.point.get().copied().ok_or(Rv(CKR_DEVICE_ERROR)),
            _ => fail(CKR_KEY_TYPE_INCONSISTENT),
        }
    }

    /// Reads the object list if needed, and the files if they may match.
    fn load(&self, class: Option<CK_OBJECT_CLASS>) -> Result {
        let (keys, files) = lock(&self.objects).missing();
        if keys {
            let private = self.pin_state()? != PinState::Absent;
            let inventory = self.with_token(|token, deadline| token.objects(deadline))?;
            lock(&self.objects).set_keys(&inventory, private);
        }
        let wants_files = class.is_none_or(|class| matches!(class, CKO_CERTIFICATE | CKO_DATA));
        if (keys || files) && wants_files {
            self.load_files()?;
        }
        Ok(())
    }

    fn load_files(&self) -> Result {
        let files = lock(&self.objects).files();
        let mut contents = Vec::with_capacity(files.len());
        for file in files {
            let content = match self.with_token(|token, deadline| token.read_file(&file, deadline))
            {
                Ok(content) => content,
                // A file that must not be read is skipped.
                Err(Rv(CKR_DEVICE_REMOVED)) => return fail(CKR_DEVICE_REMOVED),
                Err(_) if self.is_absent() => return fail(CKR_DEVICE_ERROR),
                Err(_) => continue,
            };
            contents.push(FileContent::of(file, content));
        }
        if contents.iter().any(FileContent::is_certificate) {
            // Certificates are matched to keys by their public keys.
            for (_, object) in lock(&self.objects).all() {
                // A public key that cannot be read matches none.
                let _ = self.prepare(&object, CKA_EC_POINT);
            }
        }
        lock(&self.objects).set_files(contents);
        Ok(())
    }

    /// The table of objects.
    pub fn objects(&self) -> MutexGuard<'_, ObjectTable> {
        lock(&self.objects)
    }
}

/// Whether the return value says too little: not of what a command answers, unless it is one that
/// has to succeed before any other.
fn is_for_people(error: &TokenError) -> bool {
    match error {
        TokenError::PinWrong { .. } => false,
        TokenError::Status { command, .. } => matches!(&**command, "SELECT" | "MANAGE CHANNEL"),
        _ => true,
    }
}

/// Ignores poisoning: a panic is a CKR_GENERAL_ERROR of one call, not of all later ones.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
