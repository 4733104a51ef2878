// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slot and token management functions (PKCS#11 2.40 section 5.5).

use cryptoki_sys::*;
use warifu_card::identity;
use warifu_iotsafe_client::{PinState, TokenInfo};

use crate::library::Library;
use crate::mechanism;
use crate::rv::{Result, Rv};
use crate::text::{MANUFACTURER, padded};

const NO_VERSION: CK_VERSION = CK_VERSION { major: 0, minor: 0 };
/// The lengths of a PIN (ETSI TS 102 221 section 9.5.1).
const PIN_BYTES: (usize, usize) = (warifu_card::PIN_MIN_BYTES, warifu_card::PIN_MAX_BYTES);

/// C_GetSlotList.
#[must_use]
pub fn get_slot_list(library: &Library, with_token: bool) -> Vec<CK_SLOT_ID> {
    let slots = library.slots().iter().filter(|slot| !with_token || slot.info().is_ok());
    slots.map(|slot| slot.id).collect()
}

/// C_GetSlotInfo.
///
/// # Errors
/// CKR_SLOT_ID_INVALID.
pub fn get_slot_info(library: &Library, slot: CK_SLOT_ID) -> Result<CK_SLOT_INFO> {
    let slot = library.slot(slot)?;
    let present = if slot.info().is_ok() { CKF_TOKEN_PRESENT } else { 0 };
    Ok(CK_SLOT_INFO {
        slotDescription: padded(slot.location.as_bytes()),
        manufacturerID: padded(MANUFACTURER.as_bytes()),
        flags: CKF_REMOVABLE_DEVICE | CKF_HW_SLOT | present,
        hardwareVersion: NO_VERSION,
        firmwareVersion: NO_VERSION,
    })
}

/// C_GetTokenInfo.
///
/// # Errors
/// CKR_SLOT_ID_INVALID, CKR_TOKEN_NOT_PRESENT, CKR_TOKEN_NOT_RECOGNIZED.
pub fn get_token_info(library: &Library, slot: CK_SLOT_ID) -> Result<CK_TOKEN_INFO> {
    let slot = library.slot(slot)?;
    let info = slot.info()?;
    let pin = slot.pin_state().map_err(|_| Rv(CKR_TOKEN_NOT_PRESENT))?;
    let (sessions, rw_sessions) = library.session_counts(slot.id);
    let label = slot.label.clone().unwrap_or_else(|| label_of(&info));
    Ok(CK_TOKEN_INFO {
        label: padded(label.as_bytes()),
        manufacturerID: padded(MANUFACTURER.as_bytes()),
        model: padded(b"IoT SAFE"),
        serialNumber: padded(serial(&info).as_bytes()),
        flags: CKF_RNG | CKF_TOKEN_INITIALIZED | pin_flags(pin),
        ulMaxSessionCount: CK_EFFECTIVELY_INFINITE,
        ulSessionCount: sessions,
        ulMaxRwSessionCount: CK_EFFECTIVELY_INFINITE,
        ulRwSessionCount: rw_sessions,
        ulMaxPinLen: PIN_BYTES.1 as CK_ULONG,
        ulMinPinLen: PIN_BYTES.0 as CK_ULONG,
        ulTotalPublicMemory: CK_UNAVAILABLE_INFORMATION,
        ulFreePublicMemory: CK_UNAVAILABLE_INFORMATION,
        ulTotalPrivateMemory: CK_UNAVAILABLE_INFORMATION,
        ulFreePrivateMemory: CK_UNAVAILABLE_INFORMATION,
        hardwareVersion: NO_VERSION,
        firmwareVersion: CK_VERSION { major: info.version.unwrap_or_default(), minor: 0 },
        utcTime: padded(b""),
    })
}

/// C_GetMechanismList.
///
/// # Errors
/// As [`get_token_info`].
pub fn get_mechanism_list(library: &Library, slot: CK_SLOT_ID) -> Result<Vec<CK_MECHANISM_TYPE>> {
    library.slot(slot)?.info()?;
    Ok(mechanism::list().collect())
}

/// C_GetMechanismInfo.
///
/// # Errors
/// As [`get_token_info`]; CKR_MECHANISM_INVALID.
pub fn get_mechanism_info(
    library: &Library,
    slot: CK_SLOT_ID,
    kind: CK_MECHANISM_TYPE,
) -> Result<CK_MECHANISM_INFO> {
    library.slot(slot)?.info()?;
    mechanism::info(kind)
}

/// A card without a PIN needs no login. CKF_USER_PIN_COUNT_LOW: fewer tries than the usual three.
fn pin_flags(pin: PinState) -> CK_FLAGS {
    let needed = CKF_LOGIN_REQUIRED | CKF_USER_PIN_INITIALIZED;
    match pin {
        PinState::Absent => 0,
        PinState::Verified | PinState::Wanted(None) => needed,
        PinState::Wanted(Some(1)) => needed | CKF_USER_PIN_COUNT_LOW | CKF_USER_PIN_FINAL_TRY,
        PinState::Wanted(Some(2)) => needed | CKF_USER_PIN_COUNT_LOW,
        PinState::Wanted(Some(_)) => needed,
        PinState::Locked => needed | CKF_USER_PIN_LOCKED,
    }
}

/// The label in the applet's identifier, if that is text.
fn label_of(info: &TokenInfo) -> String {
    identity::label(&info.applet_id).unwrap_or(identity::NO_LABEL).to_owned()
}

fn serial(info: &TokenInfo) -> String {
    let serial = identity::serial(&info.applet_id);
    serial.iter().map(|byte| format!("{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_and_serial_of_applet_ids() {
        let mut info = TokenInfo { applet_id: b"warifu".to_vec(), ..TokenInfo::default() };
        assert_eq!((label_of(&info), serial(&info)), ("warifu".into(), "776172696675".into()));
        info.applet_id = identity::applet_id("meter", [1, 2, 3, 4, 5, 6, 7, 0xff]).unwrap();
        assert_eq!((label_of(&info), serial(&info)), ("meter".into(), "01020304050607FF".into()));
        info.applet_id = vec![0, 1];
        assert_eq!(label_of(&info), "iot-safe");
        assert_eq!(pin_flags(PinState::Absent) & CKF_LOGIN_REQUIRED, 0);
        assert_ne!(pin_flags(PinState::Locked) & CKF_USER_PIN_LOCKED, 0);
    }
}
