//! What crashed ranks left in shared memory.

use std::io;
use std::path::Path;

/// Removes the files of the job `job` from `directory` (`/dev/shm`): those named
/// `lintel-<job>-…`. Returns how many there were.
///
/// # Errors
/// The directory can't be read. A file that can't be removed stays, uncounted.
pub fn remove(directory: &Path, job: &str) -> io::Result<usize> {
    let prefix = format!("lintel-{job}-");
    let mut count = 0;
    for entry in directory.read_dir()? {
        let entry = entry?;
        let ours = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(prefix.as_bytes());
        if ours && std::fs::remove_file(entry.path()).is_ok() {
            count += 1;
        }
    }
    Ok(count)
}

/// Where segments live.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";
