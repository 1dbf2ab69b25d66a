//! The capture of a process's messages (`PTL_PCAP`), as a file for Wireshark. Without it a
//! message costs nothing: [`Capture`] wraps the networks only if one is asked for.

use crate::log::{Level, log};
use lintel_nal::{Capture, pcapng::Writer};
use lintel_types::ProcessId;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of a process's file. What comes later isn't captured, so that a forgotten variable
/// doesn't fill a disk.
const MOST_BYTES: u64 = 256 << 20;

/// Wraps the NAL of that process and user in a capture to a file of its own in `directory`;
/// leaves it alone, with a warning, if there can be none.
pub(crate) fn captured<N>(
    nal: N,
    directory: &Path,
    process: ProcessId,
    uid: u32,
) -> Result<Capture<N, File>, N> {
    let file = file_of(directory, process);
    match writer(&file, process) {
        Ok(writer) => Ok(Capture::new(nal, (process, uid), writer, warn)),
        Err(error) => {
            warn(&format!("{} isn't written: {error}", file.display()));
            Err(nal)
        }
    }
}

/// A name that no other process of the machine has at the same time.
fn file_of(directory: &Path, process: ProcessId) -> PathBuf {
    let (nid, pid, os_process) = (process.nid, process.pid, std::process::id());
    directory.join(format!("{nid:x}-{pid}-{os_process}.pcapng"))
}

/// The folder may be shared, and the name can be foreseen: no link is followed, and nobody
/// else's file touched.
fn writer(path: &Path, process: ProcessId) -> io::Result<Writer<File>> {
    let file = lintel_private_file::open_or_create(path)?;
    file.set_len(0)?;
    let most = lintel_private_file::size_limit().min(MOST_BYTES);
    let program = concat!("Lintel ", env!("CARGO_PKG_VERSION"));
    Writer::new(file, program, &process.to_string(), most)
}

fn warn(words: &str) {
    log(Level::Warn, &format!("PTL_PCAP: {words}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_nal::Loopback;

    const ME: ProcessId = ProcessId::new(1, 2);

    #[test]
    fn a_link_of_the_name_is_not_followed_and_an_own_file_is_written_anew() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (other, own) = (folder.path().join("other"), file_of(folder.path(), ME));
        std::fs::write(&other, "stays").expect("it can be written");
        std::os::unix::fs::symlink(&other, &own).expect("it can be made");
        assert!(captured(Loopback::new(ME, 3), folder.path(), ME, 3).is_err());
        std::fs::remove_file(&own).expect("it can be removed");
        let mut lengths = Vec::new();
        for _ in 0..2 {
            assert!(captured(Loopback::new(ME, 3), folder.path(), ME, 3).is_ok());
            lengths.push(std::fs::metadata(&own).expect("it is there").len());
        }
        assert_eq!(lengths[0], lengths[1]);
        assert_eq!(std::fs::read(&other).expect("it is there"), b"stays");
    }
}
