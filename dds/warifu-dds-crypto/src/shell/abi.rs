// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cyclone DDS's types and tables of functions (dds_security_api_types.h and
//! dds_security_api_cryptography.h of 0.10), written down here so that building needs no headers; a
//! test holds their layout against the headers.

use std::ffi::{c_char, c_int, c_void};

use crate::entity::Handle;

/// `DDS_Security_boolean`.
pub type Boolean = u8;

/// Sequences all have this shape.
#[repr(C)]
pub struct Seq<T> {
    /// Places in `buffer`.
    pub maximum: u32,
    /// Of which so many are used.
    pub length: u32,
    /// Allocated with `malloc`, by whoever fills it.
    pub buffer: *mut T,
}

/// `DDS_Security_OctetSeq`.
pub type OctetSeq = Seq<u8>;
/// `DDS_Security_CryptoHandleSeq`.
pub type HandleSeq = Seq<Handle>;

/// `DDS_Security_SecurityException`.
#[repr(C)]
pub struct Exception {
    /// Allocated with `malloc`.
    pub message: *mut c_char,
    /// See `Error::code`.
    pub code: i32,
    /// Not used.
    pub minor_code: i32,
}

/// `DDS_Security_Property_t`.
#[repr(C)]
pub struct Property {
    /// Its name.
    pub name: *mut c_char,
    /// Its value.
    pub value: *mut c_char,
    /// Whether peers are told.
    pub propagate: Boolean,
}

/// `DDS_Security_BinaryProperty_t`.
#[repr(C)]
pub struct BinaryProperty {
    /// Its name.
    pub name: *mut c_char,
    /// Its value.
    pub value: OctetSeq,
    /// Whether peers are told.
    pub propagate: Boolean,
}

/// `DDS_Security_DataHolder`.
#[repr(C)]
pub struct DataHolder {
    /// What kind of token it is.
    pub class_id: *mut c_char,
    /// Texts.
    pub properties: Seq<Property>,
    /// Octets.
    pub binary_properties: Seq<BinaryProperty>,
}

/// `DDS_Security_ParticipantSecurityAttributes`.
#[repr(C)]
pub struct ParticipantAttributes {
    /// Governance's `allow_unauthenticated_participants`.
    pub allow_unauthenticated_participants: Boolean,
    /// Governance's `enable_join_access_control`.
    pub is_access_protected: Boolean,
    /// Governance's `rtps_protection_kind` is not NONE.
    pub is_rtps_protected: Boolean,
    /// Governance's `discovery_protection_kind` is not NONE.
    pub is_discovery_protected: Boolean,
    /// Governance's `liveliness_protection_kind` is not NONE.
    pub is_liveliness_protected: Boolean,
    /// Flags.
    pub plugin_participant_attributes: u32,
    /// Not used.
    pub ac_endpoint_properties: Seq<Property>,
}

/// `DDS_Security_EndpointSecurityAttributes`.
#[repr(C)]
pub struct EndpointAttributes {
    /// Governance's `enable_read_access_control`.
    pub is_read_protected: Boolean,
    /// Governance's `enable_write_access_control`.
    pub is_write_protected: Boolean,
    /// Governance's `enable_discovery_protection`.
    pub is_discovery_protected: Boolean,
    /// Governance's `enable_liveliness_protection`.
    pub is_liveliness_protected: Boolean,
    /// Governance's `metadata_protection_kind` is not NONE.
    pub is_submessage_protected: Boolean,
    /// Governance's `data_protection_kind` is not NONE.
    pub is_payload_protected: Boolean,
    /// The key of a keyed topic is protected.
    pub is_key_protected: Boolean,
    /// Flags.
    pub plugin_endpoint_attributes: u32,
    /// Not used.
    pub ac_endpoint_properties: Seq<Property>,
}

/// Flags of `plugin_participant_attributes`.
pub mod participant_flag {
    /// RTPS messages are encrypted.
    pub const IS_RTPS_ENCRYPTED: u32 = 1;
    /// They have receiver-specific tags.
    pub const IS_RTPS_AUTHENTICATED: u32 = 1 << 3;
}

/// Flags of `plugin_endpoint_attributes`.
pub mod endpoint_flag {
    /// Submessages are encrypted.
    pub const IS_SUBMESSAGE_ENCRYPTED: u32 = 1;
    /// Samples are encrypted.
    pub const IS_PAYLOAD_ENCRYPTED: u32 = 1 << 1;
    /// Submessages have receiver-specific tags.
    pub const IS_SUBMESSAGE_ORIGIN_AUTHENTICATED: u32 = 1 << 2;
}

/// `DDS_Security_SharedSecretHandleImpl`, to which a shared secret's handle points
/// (core/shared_secret.h).
#[repr(C)]
pub struct SharedSecretImpl {
    /// The secret.
    pub secret: *const u8,
    /// Its length.
    pub secret_bytes: i32,
    /// The initiator's challenge.
    pub challenge1: [u8; 32],
    /// The responder's.
    pub challenge2: [u8; 32],
}

type Instance = *mut c_void;

/// `dds_security_crypto_key_factory`.
#[repr(C)]
pub struct KeyFactory {
    /// A participant of this process.
    pub register_local_participant: unsafe extern "C" fn(
        Instance,
        i64,
        i64,
        *const Seq<Property>,
        *const ParticipantAttributes,
        *mut Exception,
    ) -> Handle,
    /// A peer.
    pub register_matched_remote_participant:
        unsafe extern "C" fn(Instance, Handle, i64, i64, i64, *mut Exception) -> Handle,
    /// A writer of ours.
    pub register_local_datawriter: unsafe extern "C" fn(
        Instance,
        Handle,
        *const Seq<Property>,
        *const EndpointAttributes,
        *mut Exception,
    ) -> Handle,
    /// A peer's reader.
    pub register_matched_remote_datareader:
        unsafe extern "C" fn(Instance, Handle, Handle, i64, Boolean, *mut Exception) -> Handle,
    /// A reader of ours.
    pub register_local_datareader: unsafe extern "C" fn(
        Instance,
        Handle,
        *const Seq<Property>,
        *const EndpointAttributes,
        *mut Exception,
    ) -> Handle,
    /// A peer's writer.
    pub register_matched_remote_datawriter:
        unsafe extern "C" fn(Instance, Handle, Handle, i64, *mut Exception) -> Handle,
    /// Any participant.
    pub unregister_participant: Unregister,
    /// Any writer.
    pub unregister_datawriter: Unregister,
    /// Any reader.
    pub unregister_datareader: Unregister,
}

type Unregister = unsafe extern "C" fn(Instance, Handle, *mut Exception) -> Boolean;

/// `dds_security_crypto_key_exchange`.
#[repr(C)]
pub struct KeyExchange {
    /// For a peer.
    pub create_local_participant_crypto_tokens: CreateTokens,
    /// From a peer.
    pub set_remote_participant_crypto_tokens: SetTokens,
    /// For a peer's reader.
    pub create_local_datawriter_crypto_tokens: CreateTokens,
    /// From a peer's writer.
    pub set_remote_datawriter_crypto_tokens: SetTokens,
    /// For a peer's writer.
    pub create_local_datareader_crypto_tokens: CreateTokens,
    /// From a peer's reader.
    pub set_remote_datareader_crypto_tokens: SetTokens,
    /// Gives back what was created.
    pub return_crypto_tokens:
        unsafe extern "C" fn(Instance, *mut Seq<DataHolder>, *mut Exception) -> Boolean,
}

type CreateTokens =
    unsafe extern "C" fn(Instance, *mut Seq<DataHolder>, Handle, Handle, *mut Exception) -> Boolean;
type SetTokens = unsafe extern "C" fn(
    Instance,
    Handle,
    Handle,
    *const Seq<DataHolder>,
    *mut Exception,
) -> Boolean;

/// `dds_security_crypto_transform`.
#[repr(C)]
pub struct Transform {
    /// Encoded, extra inline QoS, plain, writer.
    pub encode_serialized_payload: unsafe extern "C" fn(
        Instance,
        *mut OctetSeq,
        *mut OctetSeq,
        *const OctetSeq,
        Handle,
        *mut Exception,
    ) -> Boolean,
    /// Encoded, plain, writer, readers, index of the next of them.
    pub encode_datawriter_submessage: EncodeForMany,
    /// Encoded, plain, reader, writers.
    pub encode_datareader_submessage: unsafe extern "C" fn(
        Instance,
        *mut OctetSeq,
        *const OctetSeq,
        Handle,
        *const HandleSeq,
        *mut Exception,
    ) -> Boolean,
    /// Encoded, plain, local participant, remote ones, index of the next of them.
    pub encode_rtps_message: EncodeForMany,
    /// Plain, encoded, local participant, remote one.
    pub decode_rtps_message: Decode,
    /// Writer, reader, category, encoded, local participant, remote one.
    pub preprocess_secure_submsg: unsafe extern "C" fn(
        Instance,
        *mut Handle,
        *mut Handle,
        *mut c_int,
        *const OctetSeq,
        Handle,
        Handle,
        *mut Exception,
    ) -> Boolean,
    /// Plain, encoded, local reader, remote writer.
    pub decode_datawriter_submessage: Decode,
    /// Plain, encoded, local writer, remote reader.
    pub decode_datareader_submessage: Decode,
    /// Plain, encoded, inline QoS, local reader, remote writer.
    pub decode_serialized_payload: unsafe extern "C" fn(
        Instance,
        *mut OctetSeq,
        *const OctetSeq,
        *const OctetSeq,
        Handle,
        Handle,
        *mut Exception,
    ) -> Boolean,
}

type EncodeForMany = unsafe extern "C" fn(
    Instance,
    *mut OctetSeq,
    *const OctetSeq,
    Handle,
    *const HandleSeq,
    *mut i32,
    *mut Exception,
) -> Boolean;
type Decode = unsafe extern "C" fn(
    Instance,
    *mut OctetSeq,
    *const OctetSeq,
    Handle,
    Handle,
    *mut Exception,
) -> Boolean;

/// `dds_security_cryptography`.
#[repr(C)]
pub struct Cryptography {
    /// The domain; not used.
    pub gv: *mut c_void,
    /// For messages.
    pub crypto_transform: *mut Transform,
    /// For keys.
    pub crypto_key_factory: *mut KeyFactory,
    /// For tokens.
    pub crypto_key_exchange: *mut KeyExchange,
}

/// `DDS_SECURITY_DATAWRITER_SUBMESSAGE`.
pub const DATAWRITER_SUBMESSAGE: c_int = 1;
/// `DDS_SECURITY_DATAREADER_SUBMESSAGE`.
pub const DATAREADER_SUBMESSAGE: c_int = 2;
