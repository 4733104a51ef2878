// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Templates: attribute types with values, copied from the caller's memory.

use cryptoki_sys::*;

use crate::rv::{Result, Rv, fail};

/// The attributes of an elliptic curve public key that any template may have.
pub(crate) const PUBLIC_KEY_ATTRIBUTES: [CK_ATTRIBUTE_TYPE; 17] = [
    CKA_CLASS,
    CKA_TOKEN,
    CKA_PRIVATE,
    CKA_MODIFIABLE,
    CKA_COPYABLE,
    CKA_DESTROYABLE,
    CKA_LABEL,
    CKA_KEY_TYPE,
    CKA_ID,
    CKA_DERIVE,
    CKA_SUBJECT,
    CKA_ENCRYPT,
    CKA_VERIFY,
    CKA_VERIFY_RECOVER,
    CKA_WRAP,
    CKA_TRUSTED,
    CKA_EC_PARAMS,
];

/// The attributes of a template, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(Vec<(CK_ATTRIBUTE_TYPE, Vec<u8>)>);

impl Template {
    /// A template of these attributes.
    ///
    /// # Errors
    /// CKR_TEMPLATE_INCONSISTENT for a type with two values (PKCS#11 2.40 section 4.1.1).
    pub fn new(attributes: Vec<(CK_ATTRIBUTE_TYPE, Vec<u8>)>) -> Result<Template> {
        for (at, (kind, value)) in attributes.iter().enumerate() {
            let differs = |(other, their): &(_, Vec<u8>)| other == kind && their != value;
            if attributes[..at].iter().any(differs) {
                return fail(CKR_TEMPLATE_INCONSISTENT);
            }
        }
        Ok(Template(attributes))
    }

    /// Types and values.
    pub fn iter(&self) -> impl Iterator<Item = (CK_ATTRIBUTE_TYPE, &[u8])> {
        self.0.iter().map(|(kind, value)| (*kind, &value[..]))
    }

    /// The value of a type.
    #[must_use]
    pub fn get(&self, kind: CK_ATTRIBUTE_TYPE) -> Option<&[u8]> {
        self.iter().find(|(known, _)| *known == kind).map(|(_, value)| value)
    }

    /// The value of a type unless it is empty: tools send empty labels and ids.
    #[must_use]
    pub fn get_filled(&self, kind: CK_ATTRIBUTE_TYPE) -> Option<&[u8]> {
        self.get(kind).filter(|value| !value.is_empty())
    }

    /// A CK_BBOOL.
    ///
    /// # Errors
    /// CKR_ATTRIBUTE_VALUE_INVALID for anything but one byte 00 or 01.
    pub fn flag(&self, kind: CK_ATTRIBUTE_TYPE) -> Result<Option<bool>> {
        match self.get(kind) {
            None => Ok(None),
            Some([CK_FALSE]) => Ok(Some(false)),
            Some([CK_TRUE]) => Ok(Some(true)),
            Some(_) => fail(CKR_ATTRIBUTE_VALUE_INVALID),
        }
    }

    /// A CK_ULONG.
    ///
    /// # Errors
    /// CKR_ATTRIBUTE_VALUE_INVALID for another length.
    pub fn number(&self, kind: CK_ATTRIBUTE_TYPE) -> Result<Option<CK_ULONG>> {
        let Some(value) = self.get(kind) else { return Ok(None) };
        let bytes = value.try_into().map_err(|_| Rv(CKR_ATTRIBUTE_VALUE_INVALID))?;
        Ok(Some(CK_ULONG::from_ne_bytes(bytes)))
    }

    /// Refuses a number other than `wanted`.
    ///
    /// # Errors
    /// `otherwise`; CKR_ATTRIBUTE_VALUE_INVALID for a malformed number.
    pub fn expect(&self, kind: CK_ATTRIBUTE_TYPE, wanted: CK_ULONG, otherwise: CK_RV) -> Result {
        match self.number(kind)? {
            Some(found) if found != wanted => fail(otherwise),
            _ => Ok(()),
        }
    }

    /// Refuses attributes that are not in these lists.
    ///
    /// # Errors
    /// CKR_ATTRIBUTE_TYPE_INVALID.
    pub(crate) fn only(&self, lists: &[&[CK_ATTRIBUTE_TYPE]]) -> Result {
        let known = |kind| lists.iter().any(|list| list.contains(&kind));
        if self.iter().all(|(kind, _)| known(kind)) {
            Ok(())
        } else {
            fail(CKR_ATTRIBUTE_TYPE_INVALID)
        }
    }

    /// Refuses a flag other than `wanted`.
    ///
    /// # Errors
    /// CKR_TEMPLATE_INCONSISTENT; CKR_ATTRIBUTE_VALUE_INVALID for a malformed flag.
    pub fn expect_flag(&self, kind: CK_ATTRIBUTE_TYPE, wanted: bool) -> Result {
        match self.flag(kind)? {
            Some(found) if found != wanted => fail(CKR_TEMPLATE_INCONSISTENT),
            _ => Ok(()),
        }
    }
}

/// The value of an attribute that is a number.
#[must_use]
pub fn number(value: CK_ULONG) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}

/// The value of an attribute that is a flag.
#[must_use]
pub fn flag(value: bool) -> Vec<u8> {
    vec![if value { CK_TRUE } else { CK_FALSE }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn flags_and_numbers() {
        let template = Template::new(vec![
            (CKA_TOKEN, flag(true)),
            (CKA_CLASS, number(CKO_PUBLIC_KEY)),
            (CKA_SIGN, vec![2]),
            (CKA_LABEL, vec![]),
        ])
        .unwrap();
        assert_eq!(template.flag(CKA_TOKEN), Ok(Some(true)));
        assert_eq!(template.flag(CKA_SIGN), fail(CKR_ATTRIBUTE_VALUE_INVALID));
        assert_eq!(template.number(CKA_TOKEN), fail(CKR_ATTRIBUTE_VALUE_INVALID));
        assert_eq!(template.number(CKA_CLASS), Ok(Some(CKO_PUBLIC_KEY)));
        assert_eq!(
            (template.get(CKA_LABEL), template.get_filled(CKA_LABEL)),
            (Some(&[][..]), None)
        );
        let other = template.expect(CKA_CLASS, CKO_PRIVATE_KEY, CKR_TEMPLATE_INCONSISTENT);
        assert_eq!(other, fail(CKR_TEMPLATE_INCONSISTENT));
        assert_eq!(template.expect_flag(CKA_TOKEN, false), fail(CKR_TEMPLATE_INCONSISTENT));
    }

    #[test]
    fn attribute_with_two_values() {
        let twice = |a, b| Template::new(vec![(CKA_ID, vec![a]), (CKA_ID, vec![b])]);
        assert!(twice(1, 1).is_ok());
        assert_eq!(twice(1, 2), fail(CKR_TEMPLATE_INCONSISTENT));
    }

    proptest! {
        #[test]
        fn arbitrary_templates_do_not_panic(
            attributes in prop::collection::vec(
                (0..0x200_u64, prop::collection::vec(any::<u8>(), 0..12)),
                0..8,
            )
        ) {
            if let Ok(template) = Template::new(attributes.clone()) {
                for (kind, value) in attributes {
                    prop_assert_eq!(template.get(kind), Some(&value[..]));
                    let _ = (template.flag(kind), template.number(kind));
                }
            }
        }
    }
}
