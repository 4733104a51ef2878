// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A slot: one card's place, the card in it, and what is known of its objects.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cryptoki_sys::*;
use warifu_iotsafe_client::{PinState, Token, TokenError, TokenInfo, TransportError};
use warifu_os::TurnQueue;

use crate::object::{Kind, Object};
use crate::objects::{Contents, Objects};
use crate::rv::{Result, Rv, fail};
use crate::template::Template;

/// How long a card that did not answer is taken for absent: a program that asks for slots again
/// and again must not wait for the deadline each time.
const ABSENCE: Duration = Duration::from_secs(2);

/// The part of a call's time that is the card's: who gets no turn before it begins is told so. With
/// less a card that is well would miss the deadline, and be taken for dead.
const CARDS_PART: u32 = 4;

/// Told of errors, each in one line, for people.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// A slot.
pub struct Slot {
    /// Its number.
    pub id: CK_SLOT_ID,
    /// Where its card is, for people.
    pub place: String,
    /// The token's label, if the user gives one.
    pub label: Option<String>,
    /// Whether the card hashes texts, rather than this module.
    pub card_hashes: bool,
    /// Whether a key pair may be generated in the place of one that is there.
    pub replace_keys: bool,
    timeout: Duration,
    report: Report,
    turns: TurnQueue,
    token: Mutex<Box<dyn Token>>,
    known: Mutex<Known>,
    objects: Mutex<Objects>,
    logged_in: AtomicBool,
}

/// How a slot is made.
pub struct SlotConfig {
    /// Where its card is, for people.
    pub place: String,
    /// The token's label, if the user gives one.
    pub label: Option<String>,
    /// Whether the card hashes texts, rather than this module.
    pub card_hashes: bool,
    /// Whether a key pair may be generated in the place of one that is there.
    pub replace_keys: bool,
    /// How long one call may take.
    pub timeout: Duration,
}

/// What the card said last.
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
    pub fn new(id: CK_SLOT_ID, config: SlotConfig, token: Box<dyn Token>, report: Report) -> Slot {
        let SlotConfig { place, label, card_hashes, replace_keys, timeout } = config;
        Slot {
            id,
            place,
            label,
            card_hashes,
            replace_keys,
            timeout,
            report,
            turns: TurnQueue::default(),
            token: Mutex::new(token),
            known: Mutex::default(),
            objects: Mutex::default(),
            logged_in: AtomicBool::new(false),
        }
    }

    /// Asks the token for something. An error is reported; a card that was lost is logged out and
    /// known no more.
    ///
    /// # Errors
    /// The return value that stands for the token's error.
    pub fn ask<T>(
        &self,
        call: impl FnOnce(&mut dyn Token, Instant) -> std::result::Result<T, TokenError>,
    ) -> Result<T> {
        let begin = Instant::now();
        let deadline = begin + self.timeout;
        let turn = self.turns.acquire_within(self.timeout - self.timeout / CARDS_PART);
        let result = match &turn {
            // A call that waited while the card did not answer another would get no answer either.
            Some(_) if !self.was_silent_after(begin) => {
                let result = call(lock(&self.token).as_mut(), deadline);
                self.learn(&result);
                result
            }
            // The card has had no part in this: it is neither lost nor absent for longer.
            _ => Err(TransportError::Timeout(self.place.clone()).into()),
        };
        // The turn ends after this, so that the next one knows of a card that was lost.
        drop(turn);
        result.map_err(|error| {
            if !matches!(error, TokenError::PinWrong { .. } | TokenError::Status { .. }) {
                (self.report)(&format!("{}: {error}", self.place));
            }
            Rv::from(error)
        })
    }

    /// Tells people something about this slot that no return value says.
    pub fn tell(&self, text: &str) {
        (self.report)(&format!("{}: {text}", self.place));
    }

    fn is_absent(&self) -> bool {
        lock(&self.known).silent_since.is_some_and(|since| since.elapsed() < ABSENCE)
    }

    fn was_silent_after(&self, begin: Instant) -> bool {
        lock(&self.known).silent_since.is_some_and(|since| since > begin)
    }

    /// What an answer says of the card, or that there was none.
    fn learn<T>(&self, result: &std::result::Result<T, TokenError>) {
        match result {
            Err(error @ TokenError::Transport(_)) => self.lost(error),
            // A refusal is an answer too.
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
        lock(&self.objects).out_of_date();
    }

    /// What the card says of itself.
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
        let info = self.ask(|token, deadline| token.info(deadline)).map_err(|rv| match rv {
            Rv(CKR_TOKEN_NOT_RECOGNIZED) => rv,
            Rv(_) => Rv(CKR_TOKEN_NOT_PRESENT),
        })?;
        lock(&self.known).info = Some(info.clone());
        Ok(info)
    }

    /// How the card stands to its PIN, as it was last heard.
    ///
    /// # Errors
    /// As [`Slot::ask`].
    pub fn pin_state(&self) -> Result<PinState> {
        let known = lock(&self.known).pin;
        known.map_or_else(|| self.ask_pin_state(), Ok)
    }

    fn ask_pin_state(&self) -> Result<PinState> {
        let pin = self.ask(|token, deadline| token.pin_state(deadline))?;
        lock(&self.known).pin = Some(pin);
        Ok(pin)
    }

    /// Whether the user is logged in.
    #[must_use]
    pub fn is_logged_in(&self) -> bool {
        self.logged_in.load(Ordering::Relaxed)
    }

    /// C_Login: gives the card its PIN, once. A card without PIN lets everybody in.
    ///
    /// # Errors
    /// CKR_PIN_INCORRECT, CKR_PIN_LOCKED, and as [`Slot::ask`].
    pub fn log_in(&self, pin: &[u8]) -> Result {
        if self.is_logged_in() {
            return fail(CKR_USER_ALREADY_LOGGED_IN);
        }
        let pin_before = lock(&self.known).pin;
        let result = self.ask(|token, deadline| match token.verify_pin(pin, deadline) {
            Err(TokenError::NoPin) => Ok(()),
            other => other,
        });
        // A wrong one has changed the number of tries.
        lock(&self.known).pin = match (&result, pin_before) {
            (Ok(()), Some(PinState::Absent)) => Some(PinState::Absent),
            (Ok(()), Some(_)) => Some(PinState::Verified),
            _ => None,
        };
        result?;
        self.logged_in.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// C_Logout, and what the end of the last session means. What the card itself has verified
    /// lasts until its next reset.
    pub fn log_out(&self) {
        self.logged_in.store(false, Ordering::Relaxed);
    }

    /// The end of a session: its objects go with it. With the last one everything that is known
    /// of the card, and its channel.
    pub fn end_of_session(&self, session: CK_SESSION_HANDLE, last: bool) {
        lock(&self.objects).end_of_session(session);
        if last {
            self.log_out();
            lock(&self.objects).out_of_date();
            lock(&self.known).pin = None;
            self.release();
        }
    }

    /// Gives the card's channel back.
    pub fn release(&self) {
        self.release_by(Instant::now() + self.timeout);
    }

    /// Gives it back if that can be done by then.
    pub fn release_by(&self, deadline: Instant) {
        let within = deadline.saturating_duration_since(Instant::now());
        if let Some(_turn) = self.turns.acquire_within(within) {
            lock(&self.token).release(deadline);
        }
    }

    /// An object that the caller may see.
    ///
    /// # Errors
    /// `otherwise` for a handle of none; CKR_USER_NOT_LOGGED_IN for a private one.
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
    /// As [`Slot::ask`].
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
    /// As [`Slot::ask`].
    pub fn prepare(&self, object: &Object, kind: CK_ATTRIBUTE_TYPE) -> Result {
        let Kind::PublicKey(key) = &object.kind else { return Ok(()) };
        let Some(card_id) = &key.card_id else { return Ok(()) };
        let needs_point = matches!(kind, CKA_EC_POINT | CKA_PUBLIC_KEY_INFO);
        if needs_point && key.point.get().is_none() {
            let point = self.ask(|token, deadline| token.read_public_key(card_id, deadline))?;
            let _ = key.point.set(point); // another thread may have been faster
        }
        Ok(())
    }

    /// A private key's public point, if the card has it.
    ///
    /// # Errors
    /// As [`Slot::ask`].
    pub fn point_of(&self, object: &Object) -> Result<[u8; 65]> {
        self.prepare(object, CKA_EC_POINT)?;
        match &object.kind {
            Kind::PublicKey(key) => key.point.get().copied().ok_or(Rv(CKR_DEVICE_ERROR)),
            _ => fail(CKR_KEY_TYPE_INCONSISTENT),
        }
    }

    /// Reads the object list if need be, and the files if they may hold what is looked for.
    fn load(&self, class: Option<CK_OBJECT_CLASS>) -> Result {
        let (keys, files) = lock(&self.objects).missing();
        if keys {
            let private = self.pin_state()? != PinState::Absent;
            let inventory = self.ask(|token, deadline| token.objects(deadline))?;
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
            let content = match self.ask(|token, deadline| token.read_file(&file, deadline)) {
                Ok(content) => content,
                // A file that may not be read is none for us.
                Err(Rv(CKR_DEVICE_REMOVED)) => return fail(CKR_DEVICE_REMOVED),
                Err(_) if self.is_absent() => return fail(CKR_DEVICE_ERROR),
                Err(_) => continue,
            };
            contents.push(Contents::of(file, content));
        }
        if contents.iter().any(Contents::is_certificate) {
            // Certificates are matched to keys by what they certify.
            for (_, object) in lock(&self.objects).all() {
                // A public key that cannot be read matches nothing.
                let _ = self.prepare(&object, CKA_EC_POINT);
            }
        }
        lock(&self.objects).set_files(contents);
        Ok(())
    }

    /// Changes the table of objects.
    pub fn objects(&self) -> MutexGuard<'_, Objects> {
        lock(&self.objects)
    }
}

/// A panic while a lock was held is a CKR_GENERAL_ERROR of that call, not of all later ones.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
