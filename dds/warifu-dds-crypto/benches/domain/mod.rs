// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A domain with one writer, through the functions that Cyclone calls.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;

use warifu_dds_crypto::shell::abi::{
    Cryptography, EndpointAttributes, OctetSeq, ParticipantAttributes, Seq, endpoint_flag,
};
use warifu_dds_crypto::shell::{
    finalize_crypto, init_crypto_aegis_128l, init_crypto_aegis_256, init_crypto_aes_128_gcm,
    init_crypto_aes_256_gcm, init_crypto_ascon_aead128, init_crypto_chacha20_poly1305,
    init_crypto_deoxys_ii_128_128,
};

/// Of a plugin.
pub type Init = unsafe extern "C" fn(*const i8, *mut *mut c_void, *mut c_void) -> i32;

/// Of an encoded sample: header, length and footer with AES-GCM.
pub const FRAME_BYTES: usize = 20 + 4 + 20;

/// Each by its init function.
pub const AEADS: [(&str, Init); 7] = [
    ("AES-256-GCM", init_crypto_aes_256_gcm),
    ("AES-128-GCM", init_crypto_aes_128_gcm),
    ("AEGIS-128L", init_crypto_aegis_128l),
    ("AEGIS-256", init_crypto_aegis_256),
    ("Ascon-AEAD128", init_crypto_ascon_aead128),
    ("Deoxys-II-128-128", init_crypto_deoxys_ii_128_128),
    ("ChaCha20-Poly1305", init_crypto_chacha20_poly1305),
];

pub const fn none<T>() -> Seq<T> {
    Seq { maximum: 0, length: 0, buffer: ptr::null_mut() }
}

/// A domain with one writer whose samples are encrypted.
pub struct Domain {
    context: *mut c_void,
    writer: i64,
}

impl Domain {
    pub fn new(init: Init) -> Self {
        let mut context = ptr::null_mut();
        // SAFETY: as Cyclone calls it.
        let done = unsafe { init(ptr::null(), &raw mut context, ptr::null_mut()) };
        assert_eq!(done, 0);
        let attributes = ParticipantAttributes {
            allow_unauthenticated_participants: 0,
            is_access_protected: 1,
            is_rtps_protected: 0,
            is_discovery_protected: 0,
            is_liveliness_protected: 0,
            plugin_participant_attributes: 0,
            ac_endpoint_properties: none(),
        };
        let of_writer = EndpointAttributes {
            is_read_protected: 1,
            is_write_protected: 1,
            is_discovery_protected: 0,
            is_liveliness_protected: 0,
            is_submessage_protected: 0,
            is_payload_protected: 1,
            is_key_protected: 0,
            plugin_endpoint_attributes: endpoint_flag::IS_PAYLOAD_ENCRYPTED,
            ac_endpoint_properties: none(),
        };
        // SAFETY: the plugin was made above, and all pointers are null or to values that live.
        let writer = unsafe {
            let factory = (*context.cast::<Cryptography>()).crypto_key_factory;
            let (instance, exception) = (factory.cast(), ptr::null_mut());
            let participant = ((*factory).register_local_participant)(
                instance,
                1,
                1,
                ptr::null(),
                &raw const attributes,
                exception,
            );
            ((*factory).register_local_datawriter)(
                instance,
                participant,
                ptr::null(),
                &raw const of_writer,
                exception,
            )
        };
        assert_ne!(writer, 0);
        Self { context, writer }
    }

    /// One sample, whose buffer is freed at once.
    pub fn encode(&self, plain: &OctetSeq) {
        let mut encoded: OctetSeq = none();
        // SAFETY: as above; what is given belongs to us, and is freed once.
        unsafe {
            let transform = (*self.context.cast::<Cryptography>()).crypto_transform;
            let done = ((*transform).encode_serialized_payload)(
                transform.cast(),
                &raw mut encoded,
                ptr::null_mut(),
                plain,
                self.writer,
                ptr::null_mut(),
            );
            assert_eq!(done, 1);
            libc::free(black_box(encoded.buffer).cast());
        }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: made by init, and used no more.
        unsafe { finalize_crypto(self.context) };
    }
}
