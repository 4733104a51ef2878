// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of the three tables (dds_security_api_cryptography.h). All have one contract:
//! Cyclone passes the table that the function is in, handles, and pointers that are null or point
//! to what their types say, for as long as the call takes.
#![allow(clippy::missing_safety_doc)]

use std::ffi::{c_int, c_void};
use std::{ptr, slice};

use super::abi::{
    BinaryProperty, Boolean, DATAREADER_SUBMESSAGE, DATAWRITER_SUBMESSAGE, DataHolder,
    EndpointAttributes, Exception, HandleSeq, KeyExchange, KeyFactory, OctetSeq,
    ParticipantAttributes, Property, Seq, SharedSecretImpl, Transform, endpoint_flag,
    participant_flag,
};
use super::counters::Site;
use super::memory::{Buffer, elements, free_tokens, leak, leak_all, property, text};
use super::surroundings::announce;
use super::{factory, guard, plugin, succeeds};
use crate::algorithm::Mode;
use crate::entity::{Category, Handle};
use crate::error::{Error, Result};
use crate::exchange::{KEY_MATERIAL, PeerToken, Token};
use crate::factory::{Endpoint, Factory};
use crate::keys::SharedSecret;
use crate::protection::Protection;
use crate::settings::{AEAD_PROPERTY, MAX_BLOCKS_PROPERTY, Settings};
use crate::wire::Sink;

/// DDS_SEC_PROP_BUILTIN_ENDPOINT_NAME.
const ENDPOINT_NAME: &str = "dds.sec.builtin_endpoint_name";

pub(super) const KEY_FACTORY: KeyFactory = KeyFactory {
    register_local_participant,
    register_matched_remote_participant,
    register_local_datawriter,
    register_matched_remote_datareader,
    register_local_datareader,
    register_matched_remote_datawriter,
    unregister_participant,
    unregister_datawriter,
    unregister_datareader,
};

pub(super) const KEY_EXCHANGE: KeyExchange = KeyExchange {
    create_local_participant_crypto_tokens,
    set_remote_participant_crypto_tokens,
    create_local_datawriter_crypto_tokens,
    set_remote_datawriter_crypto_tokens,
    create_local_datareader_crypto_tokens,
    set_remote_datareader_crypto_tokens,
    return_crypto_tokens,
};

pub(super) const TRANSFORM: Transform = Transform {
    encode_serialized_payload,
    encode_datawriter_submessage,
    encode_datareader_submessage,
    encode_rtps_message,
    decode_rtps_message,
    preprocess_secure_submsg,
    decode_datawriter_submessage,
    decode_datareader_submessage,
    decode_serialized_payload,
};

unsafe extern "C" fn register_local_participant(
    instance: *mut c_void,
    _identity: i64,
    _permissions: i64,
    properties: *const Seq<Property>,
    attributes: *const ParticipantAttributes,
    exception: *mut Exception,
) -> Handle {
    let call = || {
        // SAFETY: the contract of this file.
        let factory = unsafe { factory::<KeyFactory>(instance) }?;
        // SAFETY: the contract of this file.
        let settings = unsafe { chosen(*factory.settings(), properties) }?;
        // SAFETY: the contract of this file.
        let attributes = unsafe { attributes.as_ref() };
        let attributes = attributes.ok_or(Error::Argument("the participant's attributes"))?;
        let has = |flag| attributes.plugin_participant_attributes & flag != 0;
        let protection = Protection::new(
            attributes.is_rtps_protected != 0,
            has(participant_flag::IS_RTPS_ENCRYPTED),
            has(participant_flag::IS_RTPS_AUTHENTICATED),
        );
        factory.register_local_participant(&settings, protection)
    };
    // SAFETY: the contract of this file.
    unsafe { guard(exception, 0, call) }
}

unsafe extern "C" fn register_matched_remote_participant(
    instance: *mut c_void,
    local: Handle,
    identity: i64,
    _permissions: i64,
    shared_secret: i64,
    exception: *mut Exception,
) -> Handle {
    let call = || {
        // A handle of the authentication plugin's is the address of what it stands for.
        let address = usize::try_from(shared_secret).unwrap_or_default();
        // SAFETY: the contract of this file.
        let shared = unsafe { (address as *const SharedSecretImpl).as_ref() };
        let shared = shared.ok_or(Error::Argument("the shared secret"))?;
        let bytes = usize::try_from(shared.secret_bytes).unwrap_or_default();
        if shared.secret.is_null() || bytes == 0 {
            return Err(Error::Argument("the shared secret"));
        }
        // SAFETY: so many octets are there, by the type.
        let secret = unsafe { slice::from_raw_parts(shared.secret, bytes) };
        let (challenge1, challenge2) = (&shared.challenge1, &shared.challenge2);
        let shared = SharedSecret { secret, challenge1, challenge2 };
        // SAFETY: the contract of this file.
        let factory = unsafe { factory::<KeyFactory>(instance) }?;
        factory.register_remote_participant(local, identity, &shared)
    };
    // SAFETY: the contract of this file.
    unsafe { guard(exception, 0, call) }
}

unsafe extern "C" fn register_local_datawriter(
    instance: *mut c_void,
    participant: Handle,
    properties: *const Seq<Property>,
    attributes: *const EndpointAttributes,
    exception: *mut Exception,
) -> Handle {
    let call = || {
        // SAFETY: the contract of this file.
        let factory = unsafe { factory::<KeyFactory>(instance) }?;
        // SAFETY: the contract of this file.
        let writer = unsafe {
            let name = "BuiltinParticipantVolatileMessageSecureWriter";
            endpoint(factory, participant, properties, attributes, name)
        }?;
        factory.register_local_writer(participant, writer)
    };
    // SAFETY: the contract of this file.
    unsafe { guard(exception, 0, call) }
}

unsafe extern "C" fn register_matched_remote_datareader(
    instance: *mut c_void,
    local: Handle,
    participant: Handle,
    _shared_secret: i64,
    _relay_only: Boolean,
    exception: *mut Exception,
) -> Handle {
    let call = || {
        // SAFETY: the contract of this file.
        unsafe { factory::<KeyFactory>(instance) }?.register_remote_reader(local, participant)
    };
    // SAFETY: the contract of this file.
    unsafe { guard(exception, 0, call) }
}

unsafe extern "C" fn register_local_datareader(
    instance: *mut c_void,
    participant: Handle,
    properties: *const Seq<Property>,
    attributes: *const EndpointAttributes,
    exception: *mut Exception,
) -> Handle {
    let call = || {
        // SAFETY: the contract of this file.
        let factory = unsafe { factory::<KeyFactory>(instance) }?;
        // SAFETY: the contract of this file.
        let reader = unsafe {
            let name = "BuiltinParticipantVolatileMessageSecureReader";
            endpoint(factory, participant, properties, attributes, name)
        }?;
        factory.register_local_reader(participant, reader)
    };
    // SAFETY: the contract of this file.
    unsafe { guard(exception, 0, call) }
}

unsafe extern "C" fn register_matched_remote_datawriter(
    instance: *mut c_void,
    local: Handle,
    participant: Handle,
    _shared_secret: i64,
    exception: *mut Exception,
) -> Handle {
    let call = || {
        // SAFETY: the contract of this file.
        unsafe { factory::<KeyFactory>(instance) }?.register_remote_writer(local, participant)
    };
    // SAFETY: the contract of this file.
    unsafe { guard(exception, 0, call) }
}

macro_rules! unregister {
    ($($name:ident: $method:ident;)*) => {
        $(
            unsafe extern "C" fn $name(
                instance: *mut c_void,
                handle: Handle,
                exception: *mut Exception,
            ) -> Boolean {
                // SAFETY: the contract of this file.
                let call = || unsafe { factory::<KeyFactory>(instance) }?.$method(handle);
                // SAFETY: the contract of this file.
                unsafe { succeeds(exception, call) }
            }
        )*
    };
}

unregister! {
    unregister_participant: unregister_participant;
    unregister_datawriter: unregister_writer;
    unregister_datareader: unregister_reader;
}

/// What properties change of the settings.
unsafe fn chosen(settings: Settings, properties: *const Seq<Property>) -> Result<Settings> {
    let chosen = settings.with(AEAD_PROPERTY, MAX_BLOCKS_PROPERTY, |name| {
        // SAFETY: the contract of this file.
        unsafe { property(properties, name) }
    })?;
    announce(chosen.aead);
    Ok(chosen)
}

unsafe fn endpoint(
    factory: &Factory,
    participant: Handle,
    properties: *const Seq<Property>,
    attributes: *const EndpointAttributes,
    volatile: &str,
) -> Result<Endpoint> {
    // SAFETY: the contract of this file.
    let attributes = unsafe { attributes.as_ref() };
    let attributes = attributes.ok_or(Error::Argument("the endpoint's attributes"))?;
    let has = |flag| attributes.plugin_endpoint_attributes & flag != 0;
    let protection = Protection::new(
        attributes.is_submessage_protected != 0,
        has(endpoint_flag::IS_SUBMESSAGE_ENCRYPTED),
        has(endpoint_flag::IS_SUBMESSAGE_ORIGIN_AUTHENTICATED),
    );
    let is_encrypted = has(endpoint_flag::IS_PAYLOAD_ENCRYPTED);
    let payload = match (attributes.is_payload_protected != 0, is_encrypted) {
        (false, _) => None,
        (true, true) => Some(Mode::Encrypt),
        (true, false) => Some(Mode::Sign),
    };
    let aead = factory.registry.local_participant(participant)?.aead;
    // SAFETY: the contract of this file.
    let settings = unsafe { chosen(Settings { aead, ..*factory.settings() }, properties) }?;
    // SAFETY: the contract of this file.
    let is_volatile = unsafe { property(properties, ENDPOINT_NAME) } == Some(volatile);
    Ok(Endpoint { aead: Some(settings.aead), protection, payload, is_volatile })
}

macro_rules! create_tokens {
    ($($name:ident: $method:ident;)*) => {
        $(
            unsafe extern "C" fn $name(
                instance: *mut c_void,
                tokens: *mut Seq<DataHolder>,
                local: Handle,
                remote: Handle,
                exception: *mut Exception,
            ) -> Boolean {
                let call = || {
                    // SAFETY: the contract of this file.
                    let made = unsafe { factory::<KeyExchange>(instance) }?.$method(local, remote)?;
                    // SAFETY: the contract of this file.
                    unsafe { give_tokens(tokens, made) }
                };
                // SAFETY: the contract of this file.
                unsafe { succeeds(exception, call) }
            }
        )*
    };
}

create_tokens! {
    create_local_participant_crypto_tokens: participant_tokens;
    create_local_datawriter_crypto_tokens: writer_tokens;
    create_local_datareader_crypto_tokens: reader_tokens;
}

macro_rules! set_tokens {
    ($($name:ident: $method:ident;)*) => {
        $(
            unsafe extern "C" fn $name(
                instance: *mut c_void,
                local: Handle,
                remote: Handle,
                tokens: *const Seq<DataHolder>,
                exception: *mut Exception,
            ) -> Boolean {
                let call = || {
                    // SAFETY: the contract of this file.
                    let tokens = unsafe { peer_tokens(tokens) }?;
                    // SAFETY: the contract of this file.
                    unsafe { factory::<KeyExchange>(instance) }?.$method(local, remote, &tokens)
                };
                // SAFETY: the contract of this file.
                unsafe { succeeds(exception, call) }
            }
        )*
    };
}

set_tokens! {
    set_remote_participant_crypto_tokens: set_participant_tokens;
    set_remote_datawriter_crypto_tokens: set_writer_tokens;
    set_remote_datareader_crypto_tokens: set_reader_tokens;
}

unsafe extern "C" fn return_crypto_tokens(
    _instance: *mut c_void,
    tokens: *mut Seq<DataHolder>,
    exception: *mut Exception,
) -> Boolean {
    let call = || {
        if tokens.is_null() {
            return Err(Error::Argument("the tokens"));
        }
        // SAFETY: the contract of this file, and they are what give_tokens made.
        unsafe { free_tokens(tokens) };
        Ok(())
    };
    // SAFETY: the contract of this file.
    unsafe { succeeds(exception, call) }
}

/// Fills the core's sequence.
unsafe fn give_tokens(place: *mut Seq<DataHolder>, tokens: Vec<Token>) -> Result<()> {
    const NO_MEMORY: Error = Error::Argument("memory for tokens");
    // SAFETY: the contract of this file.
    let place = unsafe { place.as_mut() }.ok_or(Error::Argument("the place for tokens"))?;
    let mut holders = Vec::with_capacity(tokens.len());
    for token in tokens {
        let mut octets = Buffer::new(token.key_material.len())?;
        octets.put(&token.key_material);
        let name = leak(KEY_MATERIAL);
        let property = BinaryProperty { name, value: octets.into_seq(), propagate: 1 };
        let nothing = Seq { maximum: 0, length: 0, buffer: ptr::null_mut() };
        holders.push(DataHolder {
            class_id: leak(token.class_id),
            properties: nothing,
            binary_properties: leak_all(vec![property]).ok_or(NO_MEMORY)?,
        });
    }
    *place = leak_all(holders).ok_or(NO_MEMORY)?;
    Ok(())
}

/// A peer's tokens, each with one key.
unsafe fn peer_tokens<'a>(tokens: *const Seq<DataHolder>) -> Result<Vec<PeerToken<'a>>> {
    // SAFETY: the contract of this file, here and below.
    let tokens = unsafe { elements(tokens) };
    let mut keys = Vec::with_capacity(tokens.len());
    for token in tokens {
        // SAFETY: see above.
        let class_id = unsafe { text(token.class_id) };
        let class_id = class_id.ok_or(Error::Token("it has no class id"))?;
        // SAFETY: see above.
        let properties = unsafe { elements(&raw const token.binary_properties) };
        let [property] = properties else {
            return Err(Error::Token("it has not one binary property"));
        };
        // SAFETY: see above.
        if unsafe { text(property.name) } != Some(KEY_MATERIAL) {
            return Err(Error::Token("its binary property is not dds.cryp.keymat"));
        }
        // SAFETY: see above.
        let key_material = unsafe { elements(&raw const property.value) };
        keys.push(PeerToken { class_id, key_material });
    }
    Ok(keys)
}

unsafe extern "C" fn encode_serialized_payload(
    instance: *mut c_void,
    encoded: *mut OctetSeq,
    _extra_inline_qos: *mut OctetSeq,
    plain: *const OctetSeq,
    writer: Handle,
    exception: *mut Exception,
) -> Boolean {
    let call = || {
        // SAFETY: the contract of this file.
        let (plugin, plain) = unsafe { (plugin::<Transform>(instance)?, elements(plain)) };
        let done = plugin.counters.count(Site::EncodePayload, plain.len(), || {
            plugin.factory.encode_payload(writer, plain, Buffer::new)
        })?;
        // SAFETY: the contract of this file.
        unsafe { give(encoded, done) }
    };
    // SAFETY: the contract of this file.
    unsafe { succeeds(exception, call) }
}

unsafe extern "C" fn decode_serialized_payload(
    instance: *mut c_void,
    plain: *mut OctetSeq,
    encoded: *const OctetSeq,
    _inline_qos: *const OctetSeq,
    reader: Handle,
    writer: Handle,
    exception: *mut Exception,
) -> Boolean {
    let call = || {
        // SAFETY: the contract of this file.
        let (plugin, encoded) = unsafe { (plugin::<Transform>(instance)?, elements(encoded)) };
        let done = plugin.counters.count(Site::DecodePayload, encoded.len(), || {
            plugin.factory.decode_payload(reader, writer, encoded, Buffer::new)
        })?;
        // SAFETY: the contract of this file.
        unsafe { give(plain, done) }
    };
    // SAFETY: the contract of this file.
    unsafe { succeeds(exception, call) }
}

/// Cyclone calls these in a loop, until `index` has reached the number of receivers; all are served
/// at once.
macro_rules! encode_for_many {
    ($($name:ident: $method:ident, $site:ident;)*) => {
        $(
            unsafe extern "C" fn $name(
                instance: *mut c_void,
                encoded: *mut OctetSeq,
                plain: *const OctetSeq,
                sender: Handle,
                receivers: *const HandleSeq,
                index: *mut i32,
                exception: *mut Exception,
            ) -> Boolean {
                let call = || {
                    // SAFETY: the contract of this file.
                    let plugin = unsafe { plugin::<Transform>(instance)? };
                    // SAFETY: the contract of this file.
                    let (plain, receivers) = unsafe { (elements(plain), elements(receivers)) };
                    // SAFETY: the contract of this file.
                    let index = unsafe { index.as_mut() };
                    let index = index.ok_or(Error::Argument("the index of receivers"))?;
                    let done = plugin.counters.count(Site::$site, plain.len(), || {
                        plugin.factory.$method(sender, receivers, plain, Buffer::new)
                    })?;
                    // SAFETY: the contract of this file.
                    unsafe { give(encoded, done) }?;
                    *index = i32::try_from(receivers.len()).unwrap_or(i32::MAX);
                    Ok(())
                };
                // SAFETY: the contract of this file.
                unsafe { succeeds(exception, call) }
            }
        )*
    };
}

encode_for_many! {
    encode_datawriter_submessage: encode_writer_submessage, EncodeWriterSubmessage;
    encode_rtps_message: encode_message, EncodeMessage;
}

unsafe extern "C" fn encode_datareader_submessage(
    instance: *mut c_void,
    encoded: *mut OctetSeq,
    plain: *const OctetSeq,
    reader: Handle,
    writers: *const HandleSeq,
    exception: *mut Exception,
) -> Boolean {
    let call = || {
        // SAFETY: the contract of this file.
        let plugin = unsafe { plugin::<Transform>(instance)? };
        // SAFETY: the contract of this file.
        let (plain, writers) = unsafe { (elements(plain), elements(writers)) };
        let done = plugin.counters.count(Site::EncodeReaderSubmessage, plain.len(), || {
            plugin.factory.encode_reader_submessage(reader, writers, plain, Buffer::new)
        })?;
        // SAFETY: the contract of this file.
        unsafe { give(encoded, done) }
    };
    // SAFETY: the contract of this file.
    unsafe { succeeds(exception, call) }
}

macro_rules! decode {
    ($($name:ident: $method:ident, $site:ident;)*) => {
        $(
            unsafe extern "C" fn $name(
                instance: *mut c_void,
                plain: *mut OctetSeq,
                encoded: *const OctetSeq,
                local: Handle,
                remote: Handle,
                exception: *mut Exception,
            ) -> Boolean {
                let call = || {
                    // SAFETY: the contract of this file.
                    let plugin = unsafe { plugin::<Transform>(instance)? };
                    // SAFETY: the contract of this file.
                    let encoded = unsafe { elements(encoded) };
                    let done = plugin.counters.count(Site::$site, encoded.len(), || {
                        plugin.factory.$method(local, remote, encoded, Buffer::new)
                    })?;
                    // SAFETY: the contract of this file.
                    unsafe { give(plain, done) }
                };
                // SAFETY: the contract of this file.
                unsafe { succeeds(exception, call) }
            }
        )*
    };
}

decode! {
    decode_rtps_message: decode_message, DecodeMessage;
    decode_datawriter_submessage: decode_writer_submessage, DecodeWriterSubmessage;
    decode_datareader_submessage: decode_reader_submessage, DecodeReaderSubmessage;
}

unsafe extern "C" fn preprocess_secure_submsg(
    instance: *mut c_void,
    writer: *mut Handle,
    reader: *mut Handle,
    category: *mut c_int,
    encoded: *const OctetSeq,
    local: Handle,
    remote: Handle,
    exception: *mut Exception,
) -> Boolean {
    let call = || {
        // SAFETY: the contract of this file.
        let (plugin, encoded) = unsafe { (plugin::<Transform>(instance)?, elements(encoded)) };
        // SAFETY: the contract of this file.
        let places = unsafe { (writer.as_mut(), reader.as_mut(), category.as_mut()) };
        let (Some(writer), Some(reader), Some(category)) = places else {
            return Err(Error::Argument("a place for the answer"));
        };
        let relation = plugin.counters.count(Site::Preprocess, encoded.len(), || {
            plugin.factory.preprocess(local, remote, encoded)
        })?;
        (*category, *writer, *reader) = match relation.category {
            Category::Writer => (DATAWRITER_SUBMESSAGE, relation.remote, relation.local),
            Category::Reader => (DATAREADER_SUBMESSAGE, relation.local, relation.remote),
        };
        Ok(())
    };
    // SAFETY: the contract of this file.
    unsafe { succeeds(exception, call) }
}

/// Leaves a buffer to the core.
unsafe fn give(place: *mut OctetSeq, buffer: Buffer) -> Result<()> {
    // SAFETY: the contract of this file.
    let place = unsafe { place.as_mut() }.ok_or(Error::Argument("the place for the result"))?;
    *place = buffer.into_seq();
    Ok(())
}
