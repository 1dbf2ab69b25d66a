//! What this process has mapped at an address, as the system says (`/proc/self/maps`).

use std::fs;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// One line of `/proc/self/maps`.
struct Mapping<'a> {
    range: Range<u64>,
    rights: &'a str,
    /// Bytes from the start of the file or segment.
    offset: u64,
    inode: u64,
    name: &'a str,
}

impl<'a> Mapping<'a> {
    /// `7f00-8f00 rw-p 00000000 00:00 0   name`
    fn parse(line: &'a str) -> Option<Mapping<'a>> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let number = |word| u64::from_str_radix(word, 16).ok();
        let rights = words.next()?;
        let offset = number(words.next()?)?;
        let inode = words.nth(1)?.parse().ok()?;
        Some(Mapping {
            range: number(start)?..number(end)?,
            rights,
            offset,
            inode,
            name: words.next().unwrap_or(""),
        })
    }

    /// Whether it is memory of this process alone that is neither a stack nor the C library's
    /// heap, and that no file lies behind.
    fn is_private(&self) -> bool {
        let is_anonymous = self.name.is_empty() || self.name.starts_with("[anon:");
        self.rights == "rw-p" && self.inode == 0 && is_anonymous
    }

    /// Whether it is the System V segment of that number.
    fn is_segment(&self, id: i32) -> bool {
        self.segment() == Some(id)
    }

    /// The number of the System V segment that it is, if it may be written to.
    fn segment(&self) -> Option<i32> {
        let is_one = self.rights == "rw-s" && self.name.starts_with("/SYSV");
        is_one.then(|| self.inode.try_into().ok()).flatten()
    }
}

/// Whether all of a range is private memory without a file behind it.
pub(crate) fn is_private(range: &Range<u64>) -> bool {
    read().is_ok_and(|maps| covers(&maps, range, |mapping| mapping.is_private()))
}

/// Whether all of a range is the System V segment of that number.
pub(crate) fn is_segment(range: &Range<u64>, id: i32) -> bool {
    read().is_ok_and(|maps| covers(&maps, range, |mapping| mapping.is_segment(id)))
}

/// A mapping of a System V segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SegmentMapping {
    /// The segment's number.
    pub(crate) id: i32,
    /// The addresses of the mapping.
    pub(crate) range: Range<u64>,
    /// Bytes from the start of the segment.
    pub(crate) offset: u64,
}

/// The mapping of a System V segment that a range lies in, if it lies in one.
pub(crate) fn segment_of(range: &Range<u64>) -> Option<SegmentMapping> {
    segment_in(&read().ok()?, range)
}

fn segment_in(maps: &str, range: &Range<u64>) -> Option<SegmentMapping> {
    let mut mappings = maps.lines().filter_map(Mapping::parse);
    let mapping = mappings.find(|mapping| mapping.range.contains(&range.start))?;
    let id = mapping.segment()?;
    (range.end <= mapping.range.end).then_some(SegmentMapping {
        id,
        range: mapping.range,
        offset: mapping.offset,
    })
}

fn read() -> io::Result<String> {
    fs::read_to_string("/proc/self/maps")
}

/// Whether mappings of that kind cover a range. Lines are in the order of their addresses.
fn covers(maps: &str, range: &Range<u64>, is_kind: impl Fn(&Mapping<'_>) -> bool) -> bool {
    let mut reached = range.start;
    for mapping in maps.lines().filter_map(Mapping::parse) {
        if mapping.range.contains(&reached) && is_kind(&mapping) {
            reached = mapping.range.end;
        }
    }
    reached >= range.end
}

/// Which pages of a range hold something; all of them where the system doesn't say.
pub(crate) fn used_pages(range: &Range<u64>, page: u64) -> Vec<bool> {
    let count = ((range.end - range.start) / page) as usize;
    let mut entries = vec![0; count * size_of::<u64>()];
    let read = File::open("/proc/self/pagemap").and_then(|pagemap| {
        pagemap.read_exact_at(&mut entries, range.start / page * size_of::<u64>() as u64)
    });
    if read.is_err() {
        return vec![true; count];
    }
    // Bits 62 and 63: swapped, present (Documentation/admin-guide/mm/pagemap.rst).
    let words = entries.chunks_exact(size_of::<u64>());
    words.map(|entry| entry[7] >> 6 != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-3000 rw-p 00000000 00:00 0 
3000-5000 rw-p 00000000 00:00 0                          [anon:libc]
5000-6000 rw-s 00002000 00:01 77                         /SYSV00000000 (deleted)
6000-7000 rw-p 00000000 00:00 0                          [stack]
8000-9000 r--p 00000000 08:01 12                         /usr/lib/x
";

    #[test]
    fn a_range_is_private_if_anonymous_mappings_cover_it() {
        let is_private = |range| covers(MAPS, &range, |mapping| mapping.is_private());
        assert!(is_private(0x1000..0x3000) && is_private(0x2000..0x5000));
        for other in [0x4000..0x6000, 0x6000..0x7000, 0..0x2000, 0x7000..0x8000] {
            assert!(!is_private(other.clone()), "{other:x?}");
        }
        assert!(!is_private(0x8000..0x9000), "a file lies behind it");
    }

    #[test]
    fn a_segment_is_known_by_its_number() {
        let is_segment = |range, id| covers(MAPS, &range, |mapping| mapping.is_segment(id));
        assert!(is_segment(0x5000..0x6000, 77));
        assert!(!is_segment(0x5000..0x6000, 78) && !is_segment(0x4000..0x6000, 77));
        let mapping = SegmentMapping {
            id: 77,
            range: 0x5000..0x6000,
            offset: 0x2000,
        };
        assert_eq!(segment_in(MAPS, &(0x5100..0x6000)), Some(mapping));
        for other in [
            0x5000..0x6001,
            0x4000..0x6000,
            0x8000..0x9000,
            0x7000..0x7001,
        ] {
            assert_eq!(segment_in(MAPS, &other), None, "{other:x?}");
        }
    }
}
