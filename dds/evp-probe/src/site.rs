// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who is at an address: a function, by the dynamic symbols of what is loaded, or a library and an
//! offset where the function has no such symbol.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::{mem, ptr};

/// `RTLD_DL_SYMENT` of dladdr1(3), which the libc crate lacks.
const RTLD_DL_SYMENT: c_int = 1;

unsafe extern "C" {
    fn dladdr1(
        address: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut *mut c_void,
        flags: c_int,
    ) -> c_int;
}

/// A function's symbol as it is, mangled; or `library+0xOFFSET`.
pub fn name(address: usize) -> String {
    // SAFETY: a plain structure of pointers, which dladdr1 fills.
    let mut info: libc::Dl_info = unsafe { mem::zeroed() };
    let mut symbol: *mut c_void = ptr::null_mut();
    // SAFETY: both places are ours; dladdr1 takes any address.
    let found =
        unsafe { dladdr1(address as *const c_void, &mut info, &mut symbol, RTLD_DL_SYMENT) };
    if found == 0 {
        return format!("{address:#x}");
    }
    let library = text(info.dli_fname);
    let library = Path::new(&library).file_name().unwrap_or_default().to_string_lossy();
    let offset = address.wrapping_sub(info.dli_fbase as usize);
    // The nearest symbol before an address need not be the function that it is in.
    // SAFETY: an entry of the object's table of symbols, which stays loaded.
    let size =
        unsafe { symbol.cast::<libc::Elf64_Sym>().as_ref() }.map_or(0, |entry| entry.st_size);
    let into = address.wrapping_sub(info.dli_saddr as usize) as u64;
    if info.dli_sname.is_null() || into >= size {
        return format!("{library}+{offset:#x}");
    }
    text(info.dli_sname)
}

fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the loader's texts end with a zero and stay.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_libc_is_known_by_its_symbol() {
        let address = libc::getpid as *const () as usize;
        assert!(name(address + 1).contains("getpid"), "{}", name(address + 1));
    }

    #[test]
    fn nothing_loaded_is_a_number() {
        assert_eq!(name(16), "0x10");
    }
}
