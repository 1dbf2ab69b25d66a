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
        let inode = words.nth(2)?.parse().ok()?;
        Some(Mapping {
            range: number(start)?..number(end)?,
            rights,
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
        let is_it = u64::try_from(id) == Ok(self.inode);
        self.rights == "rw-s" && self.name.starts_with("/SYSV") && is_it
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
5000-6000 rw-s 00000000 00:01 77                         /SYSV00000000 (deleted)
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
    }
}
