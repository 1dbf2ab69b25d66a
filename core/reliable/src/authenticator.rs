//! The authenticator of a datagram: a keyed hash of its header. The module `packet` says what
//! it protects from.

use core::cell::Cell;
use core::hash::Hasher;
use core::hint::black_box;
use siphasher::sip128::SipHasher24;

/// Bytes of an authenticator.
pub const TAG_BYTES: usize = 16;
/// Bytes at the beginning in which packets of a kind to one incarnation hardly differ.
const CONSTANT_BYTES: usize = 40;

/// An authenticator.
pub(crate) type Tag = [u8; TAG_BYTES];

/// The key of a job, by which its processes authenticate datagrams. It remembers how the last
/// datagram of either direction began: most of those that follow begin likewise, and need
/// not be hashed from the start.
#[derive(Clone)]
pub struct Key {
    sealed: Hashed,
    parsed: Hashed,
}

impl Key {
    /// From the job's secret.
    pub fn new(secret: &[u8; 32]) -> Key {
        let mut half = [0; 16];
        half.copy_from_slice(&secret[..16]);
        let hashed = Hashed::new(SipHasher24::new_with_key(&half));
        Key {
            sealed: hashed.clone(),
            parsed: hashed,
        }
    }

    /// The authenticator of a header that is to be sent.
    #[inline]
    pub(crate) fn tag(&self, header: &[u8]) -> Tag {
        self.sealed.tag(header)
    }

    /// Whether that is the authenticator of a header that has arrived.
    #[inline]
    pub(crate) fn verifies(&self, header: &[u8], tag: Tag) -> bool {
        is_same(self.parsed.tag(header), tag)
    }
}

/// A hasher, and its state behind the beginning of the header that it hashed last.
#[derive(Clone)]
struct Hashed {
    hasher: SipHasher24,
    beginning: Cell<[u8; CONSTANT_BYTES]>,
    behind: Cell<SipHasher24>,
}

impl Hashed {
    fn new(hasher: SipHasher24) -> Hashed {
        let hashed = Hashed {
            hasher,
            beginning: Cell::new([0; CONSTANT_BYTES]),
            behind: Cell::new(hasher),
        };
        hashed.begin(&[0; CONSTANT_BYTES]);
        hashed
    }

    #[cold]
    fn begin(&self, beginning: &[u8; CONSTANT_BYTES]) {
        let mut behind = self.hasher;
        behind.write(beginning);
        self.beginning.set(*beginning);
        self.behind.set(behind);
    }

    #[inline]
    fn tag(&self, header: &[u8]) -> Tag {
        let (beginning, rest) = header
            .split_first_chunk()
            .expect("a header is longer than its constant part");
        if !is_same_beginning(&self.beginning.get(), beginning) {
            self.begin(beginning);
        }
        self.behind.get().hash(rest).as_u128().to_le_bytes()
    }
}

/// Without the call that a comparison of so many bytes takes.
#[inline(always)]
fn is_same_beginning(one: &[u8; CONSTANT_BYTES], other: &[u8; CONSTANT_BYTES]) -> bool {
    let words = one.chunks_exact(8).zip(other.chunks_exact(8));
    let differing = |(one, other): (&[u8], &[u8])| {
        let word = |bytes: &[u8]| {
            bytes
                .first_chunk()
                .map_or(0, |word| u64::from_ne_bytes(*word))
        };
        word(one) ^ word(other)
    };
    words.map(differing).fold(0, |all, some| all | some) == 0
}

/// Compares all bytes, whichever differ, so that a forger learns nothing from the time.
#[inline]
fn is_same(one: Tag, other: Tag) -> bool {
    let differing = u128::from_ne_bytes(one) ^ u128::from_ne_bytes(other);
    black_box(differing) == 0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use siphasher::sip128::Hasher128;

    /// The authenticator of that header, hashed from the first byte to the last.
    pub(crate) fn whole_tag(key: &Key, header: &[u8]) -> Tag {
        let mut hasher = key.sealed.hasher;
        hasher.write(header);
        hasher.finish128().as_u128().to_le_bytes()
    }

    #[test]
    fn tags_dont_depend_on_the_headers_before() {
        let key = Key::new(&[3; 32]);
        for length in [56, 104, 128] {
            let mut header = [7; 128];
            for changed in [0, 0, 39, 40, length - 1, 39] {
                header[changed] ^= 1;
                let header = &header[..length];
                let tag = key.tag(header);
                assert_eq!(tag, whole_tag(&key, header), "{header:?}");
                assert!(key.verifies(header, tag), "{header:?}");
                for bit in 0..8 * TAG_BYTES {
                    let mut wrong = tag;
                    wrong[bit / 8] ^= 1 << (bit % 8);
                    assert!(!key.verifies(header, wrong), "bit {bit}");
                }
            }
        }
    }
}
