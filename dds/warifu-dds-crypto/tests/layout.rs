// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Our declarations of Cyclone's types against its headers: a C compiler checks sizes, offsets and
//! numbers. Ignored where the headers are missing (`apt-get install cyclonedds-dev`).

use std::fmt::Write as _;
use std::io::Write as _;
use std::mem::offset_of;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Trial};
use warifu_dds_crypto::shell::abi::{
    BinaryProperty, Cryptography, DATAREADER_SUBMESSAGE, DATAWRITER_SUBMESSAGE, DataHolder,
    EndpointAttributes, Exception, HandleSeq, KeyExchange, KeyFactory, OctetSeq,
    ParticipantAttributes, Property, Seq, SharedSecretImpl, Transform, endpoint_flag,
    participant_flag,
};

fn main() -> ExitCode {
    let there = Path::new("/usr/include/dds/security/dds_security_api.h").exists();
    let mut trial = Trial::test("declarations_are_those_of_the_headers", || {
        declarations_are_those_of_the_headers();
        Ok(())
    });
    if !there {
        trial = trial.with_kind("needs cyclonedds-dev").with_ignored_flag(true);
    }
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

/// `type: C's name { our field = C's field, ... }`, as C's assertions.
macro_rules! layouts {
    ($($ours:ty: $theirs:literal { $($field:ident = $name:literal),* $(,)? })*) => {{
        let mut c = String::new();
        $(
            let size = size_of::<$ours>();
            writeln!(c, "SAME(sizeof({}), {size});", $theirs).expect("text");
            $(
                let offset = offset_of!($ours, $field);
                let (type_, field) = ($theirs, $name);
                writeln!(c, "SAME(offsetof({type_}, {field}), {offset});").expect("text");
            )*
        )*
        c
    }};
}

fn declarations_are_those_of_the_headers() {
    let mut c = String::from(
        "#include <stddef.h>\n#include <dds/security/dds_security_api.h>\n\
         #include <dds/security/core/shared_secret.h>\n\
         #define SAME(a, b) _Static_assert((a) == (b), #a)\n",
    );
    c += &layouts! {
        OctetSeq: "DDS_Security_OctetSeq" {
            maximum = "_maximum", length = "_length", buffer = "_buffer",
        }
        HandleSeq: "DDS_Security_CryptoHandleSeq" {
            maximum = "_maximum", length = "_length", buffer = "_buffer",
        }
        Seq<DataHolder>: "DDS_Security_CryptoTokenSeq" {
            maximum = "_maximum", length = "_length", buffer = "_buffer",
        }
        Exception: "DDS_Security_SecurityException" {
            message = "message", code = "code", minor_code = "minor_code",
        }
        Property: "DDS_Security_Property_t" {
            name = "name", value = "value", propagate = "propagate",
        }
        BinaryProperty: "DDS_Security_BinaryProperty_t" {
            name = "name", value = "value", propagate = "propagate",
        }
        DataHolder: "DDS_Security_DataHolder" {
            class_id = "class_id", properties = "properties",
            binary_properties = "binary_properties",
        }
        ParticipantAttributes: "DDS_Security_ParticipantSecurityAttributes" {
            is_rtps_protected = "is_rtps_protected",
            plugin_participant_attributes = "plugin_participant_attributes",
            ac_endpoint_properties = "ac_endpoint_properties",
        }
        EndpointAttributes: "DDS_Security_EndpointSecurityAttributes" {
            is_submessage_protected = "is_submessage_protected",
            is_payload_protected = "is_payload_protected",
            plugin_endpoint_attributes = "plugin_endpoint_attributes",
            ac_endpoint_properties = "ac_endpoint_properties",
        }
        SharedSecretImpl: "DDS_Security_SharedSecretHandleImpl" {
            secret = "shared_secret", secret_bytes = "shared_secret_size",
            challenge1 = "challenge1", challenge2 = "challenge2",
        }
        Cryptography: "dds_security_cryptography" {
            gv = "gv", crypto_transform = "crypto_transform",
            crypto_key_factory = "crypto_key_factory", crypto_key_exchange = "crypto_key_exchange",
        }
        KeyFactory: "dds_security_crypto_key_factory" {
            register_local_participant = "register_local_participant",
            register_matched_remote_participant = "register_matched_remote_participant",
            register_local_datawriter = "register_local_datawriter",
            register_matched_remote_datareader = "register_matched_remote_datareader",
            register_local_datareader = "register_local_datareader",
            register_matched_remote_datawriter = "register_matched_remote_datawriter",
            unregister_participant = "unregister_participant",
            unregister_datawriter = "unregister_datawriter",
            unregister_datareader = "unregister_datareader",
        }
        KeyExchange: "dds_security_crypto_key_exchange" {
            create_local_participant_crypto_tokens = "create_local_participant_crypto_tokens",
            set_remote_participant_crypto_tokens = "set_remote_participant_crypto_tokens",
            create_local_datawriter_crypto_tokens = "create_local_datawriter_crypto_tokens",
            set_remote_datawriter_crypto_tokens = "set_remote_datawriter_crypto_tokens",
            create_local_datareader_crypto_tokens = "create_local_datareader_crypto_tokens",
            set_remote_datareader_crypto_tokens = "set_remote_datareader_crypto_tokens",
            return_crypto_tokens = "return_crypto_tokens",
        }
        Transform: "dds_security_crypto_transform" {
            encode_serialized_payload = "encode_serialized_payload",
            encode_datawriter_submessage = "encode_datawriter_submessage",
            encode_datareader_submessage = "encode_datareader_submessage",
            encode_rtps_message = "encode_rtps_message",
            decode_rtps_message = "decode_rtps_message",
            preprocess_secure_submsg = "preprocess_secure_submsg",
            decode_datawriter_submessage = "decode_datawriter_submessage",
            decode_datareader_submessage = "decode_datareader_submessage",
            decode_serialized_payload = "decode_serialized_payload",
        }
    };
    let participant = "DDS_SECURITY_PLUGIN_PARTICIPANT_ATTRIBUTES_FLAG_";
    let endpoint = "DDS_SECURITY_PLUGIN_ENDPOINT_ATTRIBUTES_FLAG_";
    let authenticated = endpoint_flag::IS_SUBMESSAGE_ORIGIN_AUTHENTICATED;
    for (prefix, name, number) in [
        (participant, "IS_RTPS_ENCRYPTED", participant_flag::IS_RTPS_ENCRYPTED),
        (participant, "IS_RTPS_AUTHENTICATED", participant_flag::IS_RTPS_AUTHENTICATED),
        (endpoint, "IS_SUBMESSAGE_ENCRYPTED", endpoint_flag::IS_SUBMESSAGE_ENCRYPTED),
        (endpoint, "IS_PAYLOAD_ENCRYPTED", endpoint_flag::IS_PAYLOAD_ENCRYPTED),
        (endpoint, "IS_SUBMESSAGE_ORIGIN_AUTHENTICATED", authenticated),
    ] {
        writeln!(c, "SAME({prefix}{name}, {number}u);").expect("text");
    }
    writeln!(c, "SAME(DDS_SECURITY_DATAWRITER_SUBMESSAGE, {DATAWRITER_SUBMESSAGE});")
        .expect("text");
    writeln!(c, "SAME(DDS_SECURITY_DATAREADER_SUBMESSAGE, {DATAREADER_SUBMESSAGE});")
        .expect("text");
    assert!(compiles(&c), "see the assertions above");
    assert!(!compiles(&format!("{c}SAME(sizeof(DDS_Security_OctetSeq), 1);")), "it can fail");
}

fn compiles(c: &str) -> bool {
    let mut compiler = Command::new("cc")
        .args(["-fsyntax-only", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("a C compiler");
    compiler.stdin.take().expect("a pipe").write_all(c.as_bytes()).expect("it reads");
    compiler.wait().expect("it ends").success()
}
