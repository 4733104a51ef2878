// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file that a process leaves: a shared mapping, written as the process runs.
//!
//! It begins with a description of itself, JSON, that names every number and says where it lies, so
//! that a reader holds no second copy of this layout. All numbers are 64 bits, little-endian.

use std::ffi::CString;
use std::fs;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::operation::{Class, PARTS};
use crate::site::{self, Chain, DEPTH};

const DESCRIPTION: usize = 4096;
const NUMBERS: usize = 32;
const LIBRARIES: usize = 4096;
const TEXT: usize = 128 * 1024;
const SITES: usize = 256;
const SITE_NUMBERS: usize = 40;
/// Eight buckets an octave up to 2^36 ns, over a minute.
const BUCKETS: usize = 280;
const MESSAGES: usize = 16_384;
/// Files of one process id: a program that executes another keeps its id.
const FILES: u32 = 1000;
/// Recordings of a folder, of 2 MB each: a command that starts thousands of programs, as a build
/// does, would fill the disk.
const RECORDINGS: usize = 500;

macro_rules! numbers {
    ($(#[$doc:meta])* $kind:ident: $($name:ident)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[allow(missing_docs, non_camel_case_types)]
        pub enum $kind { $($name),* }
        impl $kind {
            const NAMES: &[&str] = &[$(stringify!($name)),*];
        }
    };
}

numbers! {
    /// Numbers of a process.
    Number: pid started_ns begun_ns finished_ns text_used sites_left_out messages first_message_ns
    last_message_ns messages_failed messages_ns call_cost_ps call_inside_ps message_cost_ps calls
    foreign_calls inner_updates process_ns flushes
}
numbers! {
    /// Numbers of all operations of one class.
    Total: operations failed bytes aad_bytes ns in_message in_message_ns
}
numbers! {
    /// Numbers of a site, before two for each part (calls, ns).
    AtSite: class operations failed bytes aad_bytes ns in_message minimum_ns maximum_ns
    algorithm_at algorithm_bytes frame0_at frame0_bytes frame1_at frame1_bytes frame2_at
    frame2_bytes frame3_at frame3_bytes
}
numbers! {
    /// Numbers of a message.
    OfMessage: begun_ns ns encryptions decryptions macs randoms inner_updates bytes largest
    crypto_ns
}
numbers! {
    /// When totals were taken.
    Stand: now first_message last_message
}

type Totals = [[AtomicU64; Total::NAMES.len()]; Class::NAMES.len()];

/// The file as it lies in memory.
#[repr(C)]
pub struct File {
    description: [u8; DESCRIPTION],
    numbers: [AtomicU64; NUMBERS],
    totals: [Totals; Stand::NAMES.len()],
    libraries: [AtomicU8; LIBRARIES],
    text: [AtomicU8; TEXT],
    sites: [Site; SITES],
    messages: [Message; MESSAGES],
}

/// Operations of one kind, begun by one chain of calls.
#[repr(C)]
pub struct Site {
    /// Not zero once the site is taken; its key is complete by then.
    key: AtomicU64,
    numbers: [AtomicU64; SITE_NUMBERS],
    histogram: [AtomicU64; BUCKETS],
}

#[repr(C)]
struct Message {
    numbers: [AtomicU64; OfMessage::NAMES.len()],
}

/// The mapping; null while nothing is recorded.
pub static FILE: AtomicPtr<File> = AtomicPtr::new(ptr::null_mut());
/// Held where text or a site is added.
static ADDING: Mutex<()> = Mutex::new(());

/// The file of this process, if it is recorded.
pub fn file() -> Option<&'static File> {
    // SAFETY: null, or the mapping that `open` made, which is never unmapped; every field that is
    // written while others may look is atomic.
    unsafe { FILE.load(Ordering::Acquire).as_ref() }
}

/// Makes the file in `folder`, which must be a folder of this user's that nobody else can write to;
/// none where there are as many as there may be, which whoever reads them tells.
///
/// # Errors
/// What the file system says, or that the folder is not one to trust.
pub fn open(folder: &str) -> io::Result<()> {
    let size = size_of::<File>();
    let Some(descriptor) = create(folder)? else { return Ok(()) };
    let length = libc::off_t::try_from(size).map_err(io::Error::other)?;
    // All of it now: a full disk would otherwise end the program by SIGBUS, later.
    // SAFETY: a descriptor that is open.
    let refused = unsafe { libc::posix_fallocate(descriptor.as_raw_fd(), 0, length) };
    if refused != 0 {
        return Err(io::Error::from_raw_os_error(refused));
    }
    // SAFETY: a new mapping of a file of that size, which is kept for as long as the process lives.
    let place = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            descriptor.as_raw_fd(),
            0,
        )
    };
    if place == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let description = describe();
    if description.len() > DESCRIPTION {
        return Err(io::Error::other("its description is too long"));
    }
    // SAFETY: nobody else knows the mapping yet, and it is longer than its description.
    unsafe {
        ptr::copy_nonoverlapping(description.as_ptr(), place.cast::<u8>(), description.len());
    }
    FILE.store(place.cast(), Ordering::Release);
    Ok(())
}

/// From now on what happens counts: forgets what calibration left.
pub fn begin() {
    let Some(file) = file() else { return };
    for stand in file.totals.iter().flatten().flatten() {
        stand.store(0, Ordering::Relaxed);
    }
    for site in &file.sites {
        if site.key.swap(0, Ordering::AcqRel) != 0 {
            site.numbers
                .iter()
                .chain(&site.histogram)
                .for_each(|it| it.store(0, Ordering::Relaxed));
        }
    }
    let messages = usize::try_from(file.get(Number::messages)).unwrap_or(usize::MAX);
    for message in file.messages.iter().take(messages) {
        message.numbers.iter().for_each(|it| it.store(0, Ordering::Relaxed));
    }
    for number in [
        Number::messages,
        Number::first_message_ns,
        Number::last_message_ns,
        Number::messages_ns,
        Number::messages_failed,
        Number::text_used,
        Number::calls,
    ] {
        file.set(number, 0);
    }
    file.set(Number::pid, u64::from(std::process::id()));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    file.set(Number::started_ns, u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
    file.set(Number::begun_ns, now());
}

/// The process ends as it should.
pub fn finish() {
    if let Some(file) = file() {
        file.set(Number::finished_ns, now());
        file.set(Number::process_ns, warifu_os::clock::process_cpu_time().0);
    }
}

/// CLOCK_MONOTONIC.
pub fn now() -> u64 {
    warifu_os::clock::now().0
}

impl File {
    /// A number of the process.
    pub fn get(&self, number: Number) -> u64 {
        self.numbers[number as usize].load(Ordering::Relaxed)
    }

    /// Sets one.
    pub fn set(&self, number: Number, value: u64) {
        self.numbers[number as usize].store(value, Ordering::Relaxed);
    }

    /// Adds to one; returns what it was.
    pub fn add(&self, number: Number, value: u64) -> u64 {
        raise(&self.numbers[number as usize], value)
    }

    /// Adds to what all operations of a class have in common.
    pub fn total(&self, class: Class, total: Total, value: u64) {
        raise(&self.totals[Stand::now as usize][class as usize][total as usize], value);
    }

    /// What they have in common so far.
    pub fn now_total(&self, class: Class, total: Total) -> u64 {
        self.totals[Stand::now as usize][class as usize][total as usize].load(Ordering::Relaxed)
    }

    /// Keeps the totals as they stand now.
    pub fn keep_totals(&self, stand: Stand) {
        let from = self.totals[Stand::now as usize].iter().flatten();
        for (from, to) in from.zip(self.totals[stand as usize].iter().flatten()) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Keeps message `index`, if it is among the first.
    pub fn message(&self, index: u64, numbers: &[(OfMessage, u64)]) {
        let Some(message) = usize::try_from(index).ok().and_then(|index| self.messages.get(index))
        else {
            return;
        };
        for (number, value) in numbers {
            message.numbers[*number as usize].store(*value, Ordering::Relaxed);
        }
    }

    /// The loaded libraries, a path a line; what does not fit is cut off.
    pub fn set_libraries(&self, paths: &str) {
        let bytes = paths.bytes().chain(std::iter::repeat(0));
        for (to, from) in self.libraries[..LIBRARIES - 1].iter().zip(bytes) {
            to.store(from, Ordering::Relaxed);
        }
    }

    /// The site of a chain, a class and an algorithm; `algorithm` names it when it is new. None
    /// when there is no room.
    pub fn site(
        &self,
        chain: &Chain,
        class: Class,
        algorithm_id: u64,
        algorithm: impl FnOnce() -> String,
    ) -> Option<&Site> {
        let mut key = (class as u64 + 1) ^ algorithm_id.rotate_left(8);
        for address in chain {
            key = (key ^ *address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
        let key = key.max(1);
        let start = usize::try_from(key >> 56).unwrap_or(0);
        let places = || (0..SITES).map(|step| &self.sites[(start + step) % SITES]);
        let seen = |site: &&Site| site.key.load(Ordering::Acquire) == key;
        let free = |site: &&Site| site.key.load(Ordering::Acquire) == 0;
        if let Some(site) = places().take_while(|site| !free(site)).find(seen) {
            return Some(site);
        }
        let _adding = ADDING.lock().ok()?;
        if let Some(site) = places().take_while(|site| !free(site)).find(seen) {
            return Some(site);
        }
        let Some(site) = places().find(free) else {
            self.add(Number::sites_left_out, 1);
            return None;
        };
        site.set(AtSite::class, class as u64);
        site.set(AtSite::minimum_ns, u64::MAX);
        let frames = [
            (AtSite::frame0_at, AtSite::frame0_bytes),
            (AtSite::frame1_at, AtSite::frame1_bytes),
            (AtSite::frame2_at, AtSite::frame2_bytes),
            (AtSite::frame3_at, AtSite::frame3_bytes),
        ];
        const { assert!(DEPTH == 4) };
        for (address, (start, length)) in chain.iter().zip(frames) {
            if *address != 0 {
                self.put(site, &site::name(*address), start, length);
            }
        }
        self.put(site, &algorithm(), AtSite::algorithm_at, AtSite::algorithm_bytes);
        site.key.store(key, Ordering::Release);
        Some(site)
    }

    fn put(&self, site: &Site, text: &str, start: AtSite, length: AtSite) {
        let used = usize::try_from(self.get(Number::text_used)).unwrap_or(TEXT);
        let room = &self.text[used.min(TEXT)..];
        let fits = text.len().min(room.len());
        for (to, from) in room.iter().zip(text.bytes()) {
            to.store(from, Ordering::Relaxed);
        }
        site.set(start, used as u64);
        site.set(length, fits as u64);
        self.set(Number::text_used, (used + fits) as u64);
    }
}

impl Site {
    /// Sets a number.
    pub fn set(&self, number: AtSite, value: u64) {
        self.numbers[number as usize].store(value, Ordering::Relaxed);
    }

    /// Adds to a number.
    pub fn add(&self, number: AtSite, value: u64) {
        raise(&self.numbers[number as usize], value);
    }

    /// Adds calls and their time to a part.
    pub fn part(&self, part: usize, calls: u64, ns: u64) {
        let at = AtSite::NAMES.len() + 2 * part;
        raise(&self.numbers[at], calls);
        raise(&self.numbers[at + 1], ns);
    }

    /// An operation of this length.
    pub fn took(&self, ns: u64) {
        self.add(AtSite::ns, ns);
        self.numbers[AtSite::minimum_ns as usize].fetch_min(ns, Ordering::Relaxed);
        self.numbers[AtSite::maximum_ns as usize].fetch_max(ns, Ordering::Relaxed);
        self.histogram[bucket(ns)].fetch_add(1, Ordering::Relaxed);
    }
}

/// Adds to a sum, which stays at its highest instead of beginning anew; returns what it was. One
/// addition, as long as the sum is not full.
fn raise(sum: &AtomicU64, value: u64) -> u64 {
    let before = sum.fetch_add(value, Ordering::Relaxed);
    if before.checked_add(value).is_none() {
        sum.store(u64::MAX, Ordering::Relaxed);
    }
    before
}

/// Eight buckets an octave, each named by its lower end in the description.
fn bucket(ns: u64) -> usize {
    if ns < 8 {
        return usize::try_from(ns).unwrap_or(0);
    }
    let octave = 63 - ns.leading_zeros() as usize;
    let eighth = usize::try_from(ns >> (octave - 3) & 7).unwrap_or(0);
    ((octave - 2) * 8 + eighth).min(BUCKETS - 1)
}

fn create(folder: &str) -> io::Result<Option<OwnedFd>> {
    let named = folder;
    let path = CString::new(folder).map_err(io::Error::other)?;
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: a terminated path; the descriptor is checked before it is owned.
    let folder = unsafe { owned(libc::open(path.as_ptr(), flags))? };
    trusted(&folder)?;
    if fs::read_dir(named)?.take(RECORDINGS).count() == RECORDINGS {
        return Ok(None);
    }
    let pid = std::process::id();
    for number in 0..FILES {
        let name = CString::new(format!("{pid}-{number}.evp")).map_err(io::Error::other)?;
        let flags =
            libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: a terminated name in a folder that is open.
        let made = unsafe { owned(libc::openat(folder.as_raw_fd(), name.as_ptr(), flags, 0o600)) };
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.map(Some),
        }
    }
    Err(io::Error::other("too many files of one process"))
}

/// # Safety
/// `descriptor` is a new one, or -1 with errno set.
unsafe fn owned(descriptor: libc::c_int) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn trusted(folder: &OwnedFd) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let about = fs::File::from(folder.try_clone()?).metadata()?;
    // SAFETY: it cannot fail.
    let user = unsafe { libc::geteuid() };
    if about.uid() != user || about.mode() & 0o022 != 0 {
        return Err(io::Error::other(
            "not a folder of this user's that nobody else can write to (chmod 700)",
        ));
    }
    Ok(())
}

/// The JSON that a file begins with; zeroes follow.
fn describe() -> String {
    let list = |names: &[&str]| {
        names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(",")
    };
    let parts: Vec<String> = PARTS
        .iter()
        .flat_map(|part| [format!("\"{part}_calls\""), format!("\"{part}_ns\"")])
        .collect();
    let executable = fs::read_link("/proc/self/exe").unwrap_or_default();
    let executable: String = executable
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_graphic() && c != '"' && c != '\\' || c == ' ' { c } else { '?' })
        .take(1024)
        .collect();
    format!(
        concat!(
            "{{\"format\":\"warifu-evp-probe\",\"version\":1,\"build\":\"{}\",",
            "\"executable\":\"{}\",\"swap\":\"{}\",\"bytes\":{},",
            "\"numbers\":{{\"at\":{},\"names\":[{}]}},",
            "\"totals\":{{\"at\":{},\"stands\":[{}],\"classes\":[{}],\"names\":[{}]}},",
            "\"libraries\":{{\"at\":{},\"bytes\":{}}},",
            "\"text\":{{\"at\":{},\"bytes\":{}}},",
            "\"sites\":{{\"at\":{},\"count\":{},\"bytes\":{},\"numbers_at\":{},\"names\":[{},{}],",
            "\"histogram_at\":{},\"buckets\":{}}},",
            "\"messages\":{{\"at\":{},\"count\":{},\"names\":[{}]}}}}"
        ),
        warifu_os::BUILD_PROFILE,
        executable,
        crate::swap::selected().unwrap_or_default(),
        size_of::<File>(),
        offset_of!(File, numbers),
        list(Number::NAMES),
        offset_of!(File, totals),
        list(Stand::NAMES),
        list(Class::NAMES),
        list(Total::NAMES),
        offset_of!(File, libraries),
        LIBRARIES,
        offset_of!(File, text),
        TEXT,
        offset_of!(File, sites),
        SITES,
        size_of::<Site>(),
        offset_of!(Site, numbers),
        list(AtSite::NAMES),
        parts.join(","),
        offset_of!(Site, histogram),
        BUCKETS,
        offset_of!(File, messages),
        MESSAGES,
        list(OfMessage::NAMES),
    )
}

const _: () = assert!(Number::NAMES.len() <= NUMBERS);
const _: () = assert!(AtSite::NAMES.len() + 2 * PARTS.len() <= SITE_NUMBERS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_fits_with_the_longest_program_name() {
        assert!(describe().len() + 1024 < DESCRIPTION);
    }

    #[test]
    fn buckets_grow_with_time_and_hold_any() {
        let mut last = 0;
        for ns in [0, 1, 7, 8, 9, 15, 16, 100, 1_000, 1_000_000, 60_000_000_000, u64::MAX] {
            assert!(bucket(ns) >= last && bucket(ns) < BUCKETS, "{ns}");
            last = bucket(ns);
        }
        assert_ne!(bucket(1_000), bucket(1_200));
    }

    #[test]
    fn sums_stay_at_their_highest() {
        let sum = AtomicU64::new(u64::MAX - 5);
        assert_eq!(raise(&sum, 5), u64::MAX - 5);
        assert_eq!(sum.load(Ordering::Relaxed), u64::MAX);
        raise(&sum, 1);
        raise(&sum, u64::MAX);
        assert_eq!(sum.load(Ordering::Relaxed), u64::MAX);
    }

    #[test]
    fn folder_that_is_full_takes_no_more() {
        let name = format!("warifu-evp-probe-full-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        }
        for number in 0..RECORDINGS - 1 {
            fs::write(folder.join(number.to_string()), "").unwrap();
        }
        let last = create(folder.to_str().unwrap());
        let beyond = create(folder.to_str().unwrap());
        fs::remove_dir_all(&folder).unwrap();
        assert!(matches!(last, Ok(Some(_))));
        assert!(matches!(beyond, Ok(None)));
    }

    #[test]
    fn folder_that_others_can_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("warifu-evp-probe-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let mode = |bits| fs::set_permissions(&folder, fs::Permissions::from_mode(bits)).unwrap();
        let name = folder.to_str().unwrap();
        mode(0o777);
        assert!(create(name).unwrap_err().to_string().contains("chmod 700"));
        mode(0o700);
        let made = create(name);
        let second = create(name);
        let link = folder.with_extension("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        let through = create(link.to_str().unwrap());
        fs::remove_file(&link).unwrap();
        let files = fs::read_dir(&folder).unwrap().count();
        fs::remove_dir_all(&folder).unwrap();
        assert!(matches!((made, second), (Ok(Some(_)), Ok(Some(_)))));
        assert_eq!(files, 2, "an existing file is never opened");
        assert!(through.is_err(), "a link in the folder's place is not followed");
    }
}
