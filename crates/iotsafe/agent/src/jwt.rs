// SPDX-License-Identifier: Apache-2.0 OR MIT
//! JSON Web Tokens (RFC 7519), signed by a card with ES256 (RFC 7518 section 3.4), cached and
//! renewed before they expire, so that callers need not wait for the card.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use chrono::DateTime;
use jwt_compact::{Algorithm, AlgorithmExt, AlgorithmSignature, Claims, Header};
use serde_json::Value;
use warifu_agent_protocol::message::{JWT_MAX_BYTES, JwtRequest};
use warifu_card::crypto::Point;
use warifu_iotsafe_client::{Curve, Hash, Inventory, SignInput, TokenError};

use crate::LOG;
use crate::card::{Caller, Holder, lock};
use crate::rights::{Right, Rights};

/// The longest lifetime, s: a year. A token cannot be revoked, so it should not live longer.
pub const LIFETIME_MAX_S: u32 = 366 * 86_400;
/// The most cached tokens; callers of others wait for the card.
const KEPT_MAX: usize = 256;
/// What the signature adds to a token, bytes: a full stop, and 64 bytes in base64url.
const SIGNATURE_BYTES: usize = 1 + 86;
/// A failed renewal is retried after this fraction of the lifetime.
const RETRY_PART: u32 = 20;

/// The cached tokens of one card.
#[derive(Default)]
pub struct Jwts {
    kept: Mutex<BTreeMap<JwtRequest, Kept>>,
}

/// A cached token; times are since the Unix epoch.
#[derive(Clone, Debug)]
struct Kept {
    token: String,
    /// The user who first asked for it, whose place it takes.
    uid: u32,
    /// The key's id and label, for the callers' rights.
    key: (Vec<u8>, String),
    issued: Duration,
    expires: Duration,
    renew: Duration,
    /// Whether it was asked for since it was made.
    wanted: bool,
    /// The [number](Holder::keys) of the card's keys before it was signed.
    keys: u64,
}

impl Jwts {
    /// A token, and when it expires, s since the Unix epoch: a cached one unless less than a tenth
    /// of its lifetime is left.
    ///
    /// # Errors
    /// [`TokenError::Denied`] for a caller without the right, and for a request that no token can
    /// be made of; the card's errors.
    pub fn get(
        &self,
        holder: &Holder,
        caller: &Caller<'_>,
        rights: &Rights,
        request: &JwtRequest,
        deadline: Instant,
    ) -> Result<(String, u64), TokenError> {
        let now = holder.clock.unix_time();
        let last_tenth = Duration::from_secs(request.lifetime_s.into()) / 10;
        if let Some(kept) = lock(&self.kept).get_mut(request)
            && now + last_tenth < kept.expires
            && kept.is_good(holder, now)
        {
            rights.allow(Right::Token, &kept.key.0, &kept.key.1)?;
            kept.wanted = true;
            holder.metrics.token(&holder.settings.name, "hit");
            return Ok((kept.token.clone(), kept.expires.as_secs()));
        }
        holder.metrics.token(&holder.settings.name, "miss");
        let kept = make(holder, caller, rights, request, deadline)?;
        let result = (kept.token.clone(), kept.expires.as_secs());
        let mut all = lock(&self.kept);
        all.retain(|_, kept| kept.is_good(holder, now));
        if has_place(&mut all, caller.uid) {
            all.insert(request.clone(), kept);
        }
        Ok(result)
    }

    /// Renews the tokens that are past half of their lifetime and were asked for since they were
    /// made; removes expired ones. Returns when to call again.
    pub fn tick(&self, holder: &Holder) -> Option<Duration> {
        let now = holder.clock.unix_time();
        lock(&self.kept).retain(|_, kept| kept.is_good(holder, now));
        let due: Vec<JwtRequest> = lock(&self.kept)
            .iter()
            .filter(|(_, kept)| kept.wanted && kept.renew <= now)
            .map(|(request, _)| request.clone())
            .collect();
        for request in due {
            let deadline = holder.clock.now() + 2 * holder.settings.retry.attempt;
            let made = make(holder, &Caller::AGENT, &Rights::all(0), &request, deadline);
            let kind = if made.is_ok() { "renewed" } else { "not_renewed" };
            holder.metrics.token(&holder.settings.name, kind);
            let mut all = lock(&self.kept);
            match (made, all.get_mut(&request)) {
                (Ok(made), Some(kept)) => *kept = Kept { wanted: false, uid: kept.uid, ..made },
                // It was dropped meanwhile.
                (Ok(_), None) => {}
                (Err(error), Some(kept)) => {
                    let pause = Duration::from_secs(request.lifetime_s.into()) / RETRY_PART;
                    kept.renew = now + pause;
                    LOG.line(format_args!("renewing a token failed: {error}; trying again"));
                }
                (Err(_), None) => {}
            }
        }
        let now = holder.clock.unix_time();
        let all = lock(&self.kept);
        all.values()
            .map(|kept| if kept.wanted { kept.renew } else { kept.expires })
            .min()
            .map(|next| next.saturating_sub(now))
    }

    /// How many are cached.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.kept).len()
    }
}

impl Kept {
    /// Whether it is valid now, and signed with a key of this card that was not replaced since. A
    /// clock that was set back makes `iat` lie in the future: such a token is refused elsewhere, or
    /// valid for longer than was asked.
    fn is_good(&self, holder: &Holder, now: Duration) -> bool {
        self.issued <= now && now < self.expires && self.keys == holder.keys()
    }
}

/// Whether there is a place for one more token of a user. If all are taken, the user with the most
/// loses the one that ends first, unless it is the same user.
fn has_place(all: &mut BTreeMap<JwtRequest, Kept>, uid: u32) -> bool {
    if all.len() < KEPT_MAX {
        return true;
    }
    let mut counts = BTreeMap::<u32, usize>::new();
    all.values().for_each(|kept| *counts.entry(kept.uid).or_default() += 1);
    let own = counts.get(&uid).copied().unwrap_or_default();
    let others = counts.into_iter().filter(|(_, count)| *count > own + 1);
    let Some((most, _)) = others.max_by_key(|(_, count)| *count) else { return false };
    let of_most = all.iter().filter(|(_, kept)| kept.uid == most);
    let first = of_most.min_by_key(|(_, kept)| kept.expires).map(|(request, _)| request.clone());
    first.is_some_and(|request| all.remove(&request).is_some())
}

/// Has the card sign a token.
fn make(
    holder: &Holder,
    caller: &Caller<'_>,
    rights: &Rights,
    request: &JwtRequest,
    deadline: Instant,
) -> Result<Kept, TokenError> {
    check_size("the request for a token", request.size_bytes())?;
    if !(1..=LIFETIME_MAX_S).contains(&request.lifetime_s) {
        let text = format!("lifetime is {} s: expected 1 to {LIFETIME_MAX_S}", request.lifetime_s);
        return Err(TokenError::Denied(text));
    }
    let keys = holder.keys();
    let key = key_of(&*holder.inventory(caller, deadline)?, &request.key)?;
    rights.allow(Right::Token, &key.0, &key.1)?;
    let issued = Duration::from_secs(holder.clock.unix_time().as_secs());
    let lifetime = Duration::from_secs(request.lifetime_s.into());
    let expires = issued + lifetime;
    let mut claims = Claims::new(claims_of(request)?);
    let date = |time: Duration| DateTime::from_timestamp(time.as_secs() as i64, 0);
    (claims.issued_at, claims.expiration) = (date(issued), date(expires));
    let mut header = Header::empty().with_token_type("JWT");
    header.key_id.clone_from(&request.key_id);
    let mut sign = |message: &[u8]| {
        check_size("the token", message.len() + SIGNATURE_BYTES)?;
        let digest = Hash::Sha256.digest(message);
        holder.sign(caller, &key.0, SignInput::Digest(Hash::Sha256, &digest), deadline)
    };
    let card = Es256 { sign: RefCell::new(&mut sign), error: RefCell::default() };
    let token = card.token(&header, &claims, &());
    if let Some(error) = card.error.take() {
        return Err(error);
    }
    let token =
        token.map_err(|error| TokenError::Denied(format!("creating the token failed: {error}")))?;
    let (uid, renew) = (caller.uid, issued + lifetime / 2);
    Ok(Kept { token, uid, key, issued, expires, renew, wanted: true, keys })
}

/// Refuses what would take memory without limit.
fn check_size(what: &str, bytes: usize) -> Result<(), TokenError> {
    match bytes <= JWT_MAX_BYTES {
        true => Ok(()),
        false => {
            let text = format!("{what} has {bytes} B: expected {JWT_MAX_BYTES} B at most");
            Err(TokenError::Denied(text))
        }
    }
}

/// The claims other than iat and exp.
fn claims_of(request: &JwtRequest) -> Result<BTreeMap<&str, Value>, TokenError> {
    let mut claims = BTreeMap::new();
    for (name, value) in &request.claims {
        if ["iss", "sub", "aud", "exp", "iat"].contains(&&name[..]) {
            let text = format!("claim {name}: use its own option");
            return Err(TokenError::Denied(text));
        }
        let value = serde_json::from_str(value);
        let value =
            value.map_err(|_| TokenError::Denied(format!("claim {name} is not valid JSON")))?;
        claims.insert(&name[..], value);
    }
    for (name, value) in [("iss", &request.issuer), ("sub", &request.subject)] {
        if let Some(value) = value {
            claims.insert(name, Value::from(value.clone()));
        }
    }
    // One audience is a string, several are an array (RFC 7519 section 4.1.3).
    match &request.audience[..] {
        [] => None,
        [one] => claims.insert("aud", Value::from(one.clone())),
        several => claims.insert("aud", Value::from(several.to_vec())),
    };
    Ok(claims)
}

/// The id and the label of a key on secp256r1, found by its label or by its id in hexadecimal.
fn key_of(inventory: &Inventory, wanted: &str) -> Result<(Vec<u8>, String), TokenError> {
    let mut keys = inventory.private_keys.iter().filter(|key| {
        let attributes = &key.attributes;
        attributes.curve() == Some(Curve::Secp256r1)
            && attributes.may_sign()
            && attributes.signs_with(Hash::Sha256)
            && !attributes.is_volatile()
            && attributes.filled != Some(false)
    });
    let named =
        |id: &[u8], label: &str| wanted.is_empty() || label == wanted || hex::encode(id) == wanted;
    let key = keys.find(|key| named(&key.id, &key.label));
    key.map(|key| (key.id.clone(), key.label.clone())).ok_or_else(|| {
        let which = if wanted.is_empty() { String::new() } else { format!(" \"{wanted}\"") };
        TokenError::Denied(format!(
            "the card has no key{which} for ES256: choose another with --key"
        ))
    })
}

/// Signs a message.
type Signer<'a> = dyn FnMut(&[u8]) -> Result<[u8; 64], TokenError> + 'a;

/// ES256 by a card. The library's signer cannot fail, so the card's error is kept here.
struct Es256<'a> {
    sign: RefCell<&'a mut Signer<'a>>,
    error: RefCell<Option<TokenError>>,
}

/// r and s.
struct Signature([u8; 64]);

impl AlgorithmSignature for Signature {
    fn try_from_slice(slice: &[u8]) -> anyhow::Result<Signature> {
        Ok(Signature(slice.try_into()?))
    }

    fn as_bytes(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.0)
    }
}

impl Algorithm for Es256<'_> {
    type SigningKey = ();
    type VerifyingKey = Point;
    type Signature = Signature;

    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("ES256")
    }

    fn sign(&self, (): &(), message: &[u8]) -> Signature {
        let signature = (self.sign.borrow_mut())(message);
        Signature(signature.unwrap_or_else(|error| {
            self.error.replace(Some(error));
            [0; 64]
        }))
    }

    fn verify_signature(&self, signature: &Signature, key: &Point, message: &[u8]) -> bool {
        key.verify(&Hash::Sha256.digest(message), &signature.0)
    }
}
