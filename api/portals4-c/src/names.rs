//! Codes and events as text (`portals4_ext.h`).

use crate::convert::give;
use lintel_types::{Error, options};
use portals4_sys::{RawEvent, codes};
use std::ffi::{CStr, c_char, c_int};
use std::fmt::{self, Write};

/// `PTL_EV_STR_SIZE`
pub const EV_STR_SIZE: usize = 256;

/// `PtlToStr`
#[unsafe(no_mangle)]
pub extern "C" fn PtlToStr(value: c_int, r#type: u32) -> *const c_char {
    let name = match r#type {
        0 => return_code(value),
        1 => nth(&EVENTS, value),
        2 => nth(&FAILURES, value),
        _ => None,
    };
    name.unwrap_or(c"Unknown").as_ptr()
}

fn return_code(value: c_int) -> Option<&'static CStr> {
    match value {
        codes::OK => Some(c"PTL_OK"),
        codes::INTERRUPTED => Some(c"PTL_INTERRUPTED"),
        error => Error::try_from(error).ok().map(Error::c_name),
    }
}

fn nth(names: &[&'static CStr], value: c_int) -> Option<&'static CStr> {
    names.get(usize::try_from(value).ok()?).copied()
}

/// `PtlEvToStr`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEvToStr(
    ni_options: u32,
    event: *const RawEvent,
    msg: *mut c_char,
) -> c_int {
    if msg.is_null() {
        return -1;
    }
    give(msg, 0);
    if event.is_null() {
        return -1;
    }
    // SAFETY: not null, and the header asks for a filled structure, all of whose
    // members may have any value.
    let event = unsafe { event.read() };
    let mut line = Line::default();
    if describe(ni_options, &event, &mut line).is_none() {
        return -1;
    }
    // SAFETY: the header asks for room for EV_STR_SIZE bytes, and a line with its
    // NUL has no more; what it is copied from is our own.
    unsafe {
        line.bytes
            .as_ptr()
            .cast::<c_char>()
            .copy_to_nonoverlapping(msg, line.length + 1)
    };
    line.length as c_int
}

/// Writes the line; nothing if the event's kind or failure is unknown. A line that
/// is too long is cut, so writing never fails.
fn describe(ni_options: u32, event: &RawEvent, line: &mut Line) -> Option<()> {
    let kind = short(EVENTS.get(event.kind as usize)?, "PTL_EVENT_")?;
    let fail = short(FAILURES.get(event.ni_fail as usize)?, "PTL_NI_")?;
    let has = members(event.kind, event.ni_fail != 0);
    let mut append = |member: u16, words: fmt::Arguments<'_>| {
        if has & member != 0 {
            let _ = line.write_fmt(words);
        }
    };
    append(u16::MAX, format_args!("type={kind} fail={fail}"));
    let id = event.initiator;
    if ni_options & (options::NI_PHYSICAL | options::NI_LOGICAL) == options::NI_PHYSICAL {
        append(INIT, format_args!(", init=({},{})", id.nid, id.pid));
    } else {
        append(INIT, format_args!(", init=({})", id.rank()));
    }
    append(UID, format_args!(", uid={}", event.uid));
    append(BITS, format_args!(", bits={:x}", event.match_bits));
    append(RLEN, format_args!(", rlen={:x}", event.rlength));
    append(PT, format_args!(", pt={}", event.pt_index));
    append(HDR, format_args!(", hdr={:x}", event.hdr_data));
    append(LIST, format_args!(", list={}", event.list));
    append(UPTR, format_args!(", uptr={:#x}", event.user_ptr));
    append(MLEN, format_args!(", mlen={:x}", event.mlength));
    append(ROFFS, format_args!(", roffs={:x}", event.remote_offset));
    append(START, format_args!(", start={:#x}", event.start));
    append(ATOMIC, format_args!(", aop={:#x}", event.operation));
    append(ATOMIC, format_args!(", atyp={:#x}", event.datatype));
    append(u16::MAX, format_args!("\n"));
    Some(())
}

fn short(name: &'static CStr, prefix: &str) -> Option<&'static str> {
    name.to_str().ok()?.strip_prefix(prefix)
}

/// The members that an event of that kind has, or its failure.
fn members(kind: u8, failed: bool) -> u16 {
    const MESSAGE: u16 = INIT | UID | BITS | RLEN | PT | UPTR | MLEN | ROFFS | START;
    const SEARCH: u8 = 15;
    match (kind, failed) {
        (0..=7 | SEARCH, _) => {
            let more = match kind {
                0 | 1 => 0,
                2 | 3 => HDR,
                _ => HDR | ATOMIC,
            };
            let less = if failed && kind != SEARCH {
                RLEN | ROFFS
            } else {
                0
            };
            (MESSAGE | more) & !less
        }
        (8..=10, true) => UPTR,
        (9, false) => UPTR | MLEN,
        (8 | 10, false) => LIST | UPTR | MLEN | ROFFS,
        (11, _) => PT,
        _ => PT | UPTR,
    }
}

const INIT: u16 = 1;
const UID: u16 = 1 << 1;
const BITS: u16 = 1 << 2;
const RLEN: u16 = 1 << 3;
const PT: u16 = 1 << 4;
const HDR: u16 = 1 << 5;
const LIST: u16 = 1 << 6;
const UPTR: u16 = 1 << 7;
const MLEN: u16 = 1 << 8;
const ROFFS: u16 = 1 << 9;
const START: u16 = 1 << 10;
const ATOMIC: u16 = 1 << 11;

/// Text that is cut at the end of its buffer, and always ends with NUL.
struct Line {
    bytes: [u8; EV_STR_SIZE],
    length: usize,
}

impl Default for Line {
    fn default() -> Self {
        Line {
            bytes: [0; EV_STR_SIZE],
            length: 0,
        }
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..EV_STR_SIZE - 1];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.length += count;
        Ok(())
    }
}

/// By `PTL_EVENT_GET` and so on.
const EVENTS: [&CStr; 16] = [
    c"PTL_EVENT_GET",
    c"PTL_EVENT_GET_OVERFLOW",
    c"PTL_EVENT_PUT",
    c"PTL_EVENT_PUT_OVERFLOW",
    c"PTL_EVENT_ATOMIC",
    c"PTL_EVENT_ATOMIC_OVERFLOW",
    c"PTL_EVENT_FETCH_ATOMIC",
    c"PTL_EVENT_FETCH_ATOMIC_OVERFLOW",
    c"PTL_EVENT_REPLY",
    c"PTL_EVENT_SEND",
    c"PTL_EVENT_ACK",
    c"PTL_EVENT_PT_DISABLED",
    c"PTL_EVENT_LINK",
    c"PTL_EVENT_AUTO_UNLINK",
    c"PTL_EVENT_AUTO_FREE",
    c"PTL_EVENT_SEARCH",
];

/// By `PTL_NI_OK` and so on.
const FAILURES: [&CStr; 8] = [
    c"PTL_NI_OK",
    c"PTL_NI_UNDELIVERABLE",
    c"PTL_NI_DROPPED",
    c"PTL_NI_PT_DISABLED",
    c"PTL_NI_PERM_VIOLATION",
    c"PTL_NI_OP_VIOLATION",
    c"PTL_NI_NO_MATCH",
    c"PTL_NI_SEGV",
];

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_types::ProcessId;

    const PHYSICAL: u32 = options::NI_PHYSICAL | options::NI_MATCHING;

    fn name(value: c_int, r#type: u32) -> String {
        // SAFETY: PtlToStr gives a constant string.
        let name = unsafe { CStr::from_ptr(PtlToStr(value, r#type)) };
        name.to_str().expect("names are ASCII").to_owned()
    }

    /// The line, and what was returned; bytes behind the room must stay.
    fn line(ni_options: u32, event: &RawEvent) -> (String, c_int) {
        let mut room = [b'#'; EV_STR_SIZE + 8];
        // SAFETY: an event, and room for more than a line.
        let length = unsafe { PtlEvToStr(ni_options, event, room.as_mut_ptr().cast()) };
        assert_eq!(room[EV_STR_SIZE..], [b'#'; 8]);
        let text = CStr::from_bytes_until_nul(&room).expect("a line ends with NUL");
        (text.to_string_lossy().into_owned(), length)
    }

    fn text(ni_options: u32, event: &RawEvent) -> String {
        let (text, length) = line(ni_options, event);
        assert_eq!(text.len() as c_int, length);
        text
    }

    /// Every member has a value of its own.
    fn event(kind: u8, ni_fail: u8) -> RawEvent {
        RawEvent {
            start: 0x1000,
            user_ptr: 0x2000,
            hdr_data: 0x3000,
            match_bits: 0x4000,
            rlength: 0x50,
            mlength: 0x40,
            remote_offset: 0x10,
            initiator: ProcessId::new(7, 8),
            uid: 9,
            pt_index: 4,
            kind,
            list: 1,
            ni_fail,
            operation: 2,
            datatype: 13,
        }
    }

    #[test]
    fn codes_events_and_failures_have_the_names_of_their_constants() {
        assert_eq!(name(0, 0), "PTL_OK");
        assert_eq!(name(10, 0), "PTL_NO_SPACE");
        assert_eq!(name(15, 0), "PTL_ABORTED");
        assert_eq!(name(16, 0), "PTL_INTERRUPTED");
        assert_eq!(name(2, 1), "PTL_EVENT_PUT");
        assert_eq!(name(15, 1), "PTL_EVENT_SEARCH");
        assert_eq!(name(1, 2), "PTL_NI_UNDELIVERABLE");
    }

    #[test]
    fn what_has_no_name_is_unknown() {
        for (value, r#type) in [(17, 0), (-1, 0), (16, 1), (8, 2), (0, 3), (0, u32::MAX)] {
            assert_eq!(name(value, r#type), "Unknown");
        }
    }

    #[test]
    fn each_kind_has_its_members() {
        let link = RawEvent {
            kind: 12,
            pt_index: 4,
            ..RawEvent::default()
        };
        assert_eq!(text(0, &link), "type=LINK fail=OK, pt=4, uptr=0x0\n");
        assert_eq!(
            text(PHYSICAL, &event(0, 0)),
            "type=GET fail=OK, init=(7,8), uid=9, bits=4000, rlen=50, pt=4, uptr=0x2000, \
             mlen=40, roffs=10, start=0x1000\n"
        );
        assert_eq!(
            text(PHYSICAL, &event(3, 0)),
            "type=PUT_OVERFLOW fail=OK, init=(7,8), uid=9, bits=4000, rlen=50, pt=4, hdr=3000, \
             uptr=0x2000, mlen=40, roffs=10, start=0x1000\n"
        );
        assert_eq!(
            text(PHYSICAL, &event(6, 0)),
            "type=FETCH_ATOMIC fail=OK, init=(7,8), uid=9, bits=4000, rlen=50, pt=4, hdr=3000, \
             uptr=0x2000, mlen=40, roffs=10, start=0x1000, aop=0x2, atyp=0xd\n"
        );
        assert_eq!(
            text(0, &event(10, 0)),
            "type=ACK fail=OK, list=1, uptr=0x2000, mlen=40, roffs=10\n"
        );
        assert_eq!(
            text(0, &event(9, 0)),
            "type=SEND fail=OK, uptr=0x2000, mlen=40\n"
        );
        assert_eq!(
            text(0, &event(11, 3)),
            "type=PT_DISABLED fail=PT_DISABLED, pt=4\n"
        );
    }

    #[test]
    fn a_failure_leaves_out_what_it_doesnt_have() {
        assert_eq!(
            text(PHYSICAL, &event(2, 7)),
            "type=PUT fail=SEGV, init=(7,8), uid=9, bits=4000, pt=4, hdr=3000, uptr=0x2000, \
             mlen=40, start=0x1000\n"
        );
        assert_eq!(
            text(0, &event(8, 1)),
            "type=REPLY fail=UNDELIVERABLE, uptr=0x2000\n"
        );
        assert!(
            text(0, &event(15, 6)).contains("rlen=50"),
            "a search reports all members, found or not"
        );
    }

    #[test]
    fn the_initiator_is_a_rank_unless_the_interface_is_physical() {
        for ni_options in [0, options::NI_LOGICAL, PHYSICAL | options::NI_LOGICAL] {
            assert!(text(ni_options, &event(2, 0)).contains("init=(7), "));
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_ends_with_nul() {
        let long = RawEvent {
            start: u64::MAX,
            user_ptr: u64::MAX,
            hdr_data: u64::MAX,
            match_bits: u64::MAX,
            rlength: u64::MAX,
            mlength: u64::MAX,
            remote_offset: u64::MAX,
            initiator: ProcessId::new(u32::MAX, u32::MAX),
            uid: u32::MAX,
            pt_index: u32::MAX,
            ..event(7, 0)
        };
        let cut = text(PHYSICAL, &long);
        assert_eq!(cut.len(), EV_STR_SIZE - 1);
        assert!(!cut.ends_with('\n'));
    }

    #[test]
    fn an_event_of_no_kind_gives_the_empty_line() {
        for unknown in [event(16, 0), event(255, 0), event(2, 8)] {
            assert_eq!(line(0, &unknown), (String::new(), -1));
        }
        let mut room = [1; EV_STR_SIZE];
        // SAFETY: a null event is allowed.
        let length = unsafe { PtlEvToStr(0, std::ptr::null(), room.as_mut_ptr()) };
        assert_eq!((length, room[0]), (-1, 0));
        // SAFETY: a null line is allowed.
        let length = unsafe { PtlEvToStr(0, &event(2, 0), std::ptr::null_mut()) };
        assert_eq!(length, -1);
    }
}
