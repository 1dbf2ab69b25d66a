//! Shared memory segments that crashed ranks left.

use std::io;
use std::path::Path;

/// Removes the files of the job `job` from `directory` (`/dev/shm`): those named
/// `lintel-<job>-…`. Returns how many there were. `<job>-<nid>` stands for one node of a
/// job, whose files are named `lintel-<job>-<nid>-…` and `lintel-<job>-<nid>.…`.
///
/// # Errors
/// The directory can't be read. A file that can't be removed stays, uncounted.
pub fn remove(directory: &Path, job: &str) -> io::Result<usize> {
    let start = format!("lintel-{job}");
    let mut count = 0;
    for entry in directory.read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let rest = name.as_encoded_bytes().strip_prefix(start.as_bytes());
        let ours = rest.is_some_and(|rest| rest.starts_with(b"-") || rest.starts_with(b"."));
        if ours && std::fs::remove_file(entry.path()).is_ok() {
            count += 1;
        }
    }
    Ok(count)
}

/// The folder in which processes register their segments.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_of_a_job_can_be_cleared_alone() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        let names = [
            "lintel-j-a1-7",
            "lintel-j-a1.agent",
            "lintel-j-a10-7",
            "lintel-j-b1-7",
        ];
        for name in names {
            std::fs::write(place.join(name), "").unwrap();
        }
        let node = remove(place, "j-a1").unwrap();
        let others = remove(place, "j").unwrap();
        assert_eq!((node, others), (2, 2));
        assert_eq!(place.read_dir().unwrap().count(), 0);
    }
}
