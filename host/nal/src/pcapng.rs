//! The few blocks of pcapng that a capture of messages needs, as in the IETF's
//! draft-ietf-opsawg-pcapng: a section, one interface, a packet for each message.
//!
//! Each packet is handed to the file by itself and at once, so that the file of a process that
//! is killed is whole.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// The link type of the packets, `LINKTYPE_USER0`: what they are, their reader has to know.
pub const LINK_TYPE: u16 = 147;

/// Block types, and the options that are written (sections 4.1 to 4.3).
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const SECTION_PROGRAM: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// Which way a packet went, as seen by the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To this process.
    In = 1,
    /// From this process.
    Out = 2,
}

/// Writes a capture.
pub struct Writer<W> {
    to: W,
    /// Bytes that may still be written.
    room: u64,
    /// The block that is being put together.
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// A capture of at most so many bytes in all, by a program, on an interface of that name.
    ///
    /// # Errors
    /// What `to` reports.
    pub fn new(to: W, program: &str, interface: &str, most_bytes: u64) -> io::Result<Writer<W>> {
        let mut writer = Writer {
            to,
            room: most_bytes,
            block: Vec::new(),
        };
        writer.begin(SECTION);
        writer.put(&BYTE_ORDER.to_le_bytes());
        writer.put(&[1, 0, 0, 0]); // version 1.0
        writer.put(&u64::MAX.to_le_bytes()); // of unknown length
        writer.option(SECTION_PROGRAM, program.as_bytes());
        writer.end()?;
        writer.begin(INTERFACE);
        writer.put(&LINK_TYPE.to_le_bytes());
        writer.put(&[0; 6]); // reserved; packets of any length
        writer.option(INTERFACE_NAME, interface.as_bytes());
        writer.option(INTERFACE_RESOLUTION, &[9]); // nanoseconds
        writer.end()?;
        Ok(writer)
    }

    /// Writes a packet, or as much of one as `bytes` are; `length` is that of all of it.
    ///
    /// # Errors
    /// What the file reports; `StorageFull` if the capture has its most bytes.
    pub fn add(
        &mut self,
        at: SystemTime,
        direction: Direction,
        bytes: &[u8],
        length: u64,
    ) -> io::Result<()> {
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        let captured = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.begin(PACKET);
        self.put(&[0; 4]); // the interface
        self.put(&((at >> 32) as u32).to_le_bytes());
        self.put(&(at as u32).to_le_bytes());
        self.put(&captured.to_le_bytes());
        self.put(&length.to_le_bytes());
        self.put(bytes);
        self.pad();
        self.option(PACKET_FLAGS, &(direction as u32).to_le_bytes());
        self.end()
    }

    /// A block is its type, its length, what it holds, and its length once more.
    fn begin(&mut self, block_type: u32) {
        self.block.clear();
        self.put(&block_type.to_le_bytes());
        self.put(&[0; 4]);
    }

    /// After the options.
    fn end(&mut self) -> io::Result<()> {
        self.put(&[0; 4]);
        let length = self.block.len() + 4;
        let bytes = u32::try_from(length).map_err(io::Error::other)?;
        self.put(&bytes.to_le_bytes());
        self.block[4..8].copy_from_slice(&bytes.to_le_bytes());
        let room = self.room.checked_sub(length as u64);
        self.room = room.ok_or(io::ErrorKind::StorageFull)?;
        self.to.write_all(&self.block)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    /// Everything begins at a multiple of four.
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(mut bytes: &[u8]) -> Vec<(u32, usize)> {
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let word = |at: usize| {
                let word = bytes[at..].first_chunk().expect("a whole word");
                u32::from_le_bytes(*word)
            };
            let length = word(4) as usize;
            assert_eq!(word(length - 4) as usize, length, "both lengths agree");
            assert_eq!(length % 4, 0);
            blocks.push((word(0), length));
            bytes = &bytes[length..];
        }
        blocks
    }

    #[test]
    fn a_capture_is_whole_after_each_packet() {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, "test", "eth", 1000).expect("memory takes it");
        for bytes in [&[][..], &[1], &[1, 2, 3, 4]] {
            let added = writer.add(UNIX_EPOCH, Direction::Out, bytes, 99);
            added.expect("memory takes it");
        }
        let kinds: Vec<u32> = blocks(&file).iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [SECTION, INTERFACE, PACKET, PACKET, PACKET]);
    }

    #[test]
    fn a_capture_never_exceeds_its_bytes() {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, "test", "eth", 300).expect("memory takes it");
        let mut add = || writer.add(UNIX_EPOCH, Direction::In, &[0; 80], 80);
        add().expect("there is room");
        let full = add().expect_err("there is none");
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert!(file.len() <= 300);
        assert_eq!(blocks(&file).len(), 3);
    }
}
