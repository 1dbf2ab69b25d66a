//! CRC-32C of payloads, as RFC 3720 has it.

use crc_fast::{CrcAlgorithm, Digest};
use lintel_claim::Claim;

/// The checksum of what lies in claims.
pub(crate) fn checksum(pieces: &[Claim]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    for piece in pieces {
        piece.each_part(|part| digest.update(part));
    }
    digest.finalize() as u32
}

/// The checksum of bytes of our own.
pub(crate) fn checksum_of(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}
