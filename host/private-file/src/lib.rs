//! Files in folders that other users can write to (`/dev/shm`, `/run`, `/tmp`), and
//! files that hold a secret: opened so that no other user can misuse them.
//!
//! ```text
//!   path ──▶ open without following a link, without blocking
//!              │
//!              ▼
//!            what was opened: a regular file? of the effective user? mode 0600?
//!              │ yes                              │ no
//!              ▼                                  ▼
//!            File                               Refusal: names the fault and the remedy
//! ```
//!
//! The checks look at the open file and never at the name, so that nothing changes
//! between a check and its use. Root is no exception: a file of another user is
//! refused there as well, for its owner can change it at any time.
//!
//! Order of use: [`open`], [`open_to_read`] or [`open_or_create`], or [`create_unnamed`] for a file that
//! gets its name when it is complete; [`check`] for a file opened elsewhere.
//!
//! Left to others: lengths, magic numbers and locks of what the file contains.
#![forbid(unsafe_code)]

use rustix::fs::{FileType, Mode, OFlags, Stat, fchmod, fstat};
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

/// Read and write for the owner alone.
pub const MODE: u32 = 0o600;

/// Why a file isn't used.
#[derive(Debug)]
pub enum Refusal {
    /// There is no such file.
    Missing,
    /// The name is a symbolic link.
    Link,
    /// It is no regular file: a FIFO, a socket, a device, a folder.
    NotRegular,
    /// It belongs to this user.
    Foreign(u32),
    /// Others may read or write it, or its owner may not; its permission bits.
    Mode(u32),
    /// Any other error of the system.
    System(io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Missing => f.write_str("there is no such file"),
            Refusal::Link => {
                f.write_str("it is a symbolic link, which is never followed: remove it")
            }
            Refusal::NotRegular => f.write_str("it is no regular file: remove it"),
            Refusal::Foreign(uid) => write!(f, "it belongs to user {uid}: have it removed"),
            Refusal::Mode(mode) => {
                write!(
                    f,
                    "its mode is {mode:04o} and must be {MODE:04o}: change its mode"
                )
            }
            Refusal::System(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Refusal::Missing,
            Errno::LOOP => Refusal::Link,
            // What opening a FIFO or a socket without blocking results in.
            Errno::NXIO | Errno::ISDIR => Refusal::NotRegular,
            error => Refusal::System(error.into()),
        }
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match &refusal {
            Refusal::System(error) => error.kind(),
            Refusal::Missing => io::ErrorKind::NotFound,
            Refusal::Link | Refusal::NotRegular => io::ErrorKind::InvalidInput,
            Refusal::Foreign(_) | Refusal::Mode(_) => io::ErrorKind::PermissionDenied,
        };
        io::Error::new(kind, refusal)
    }
}

/// Opens an existing file for reading and writing. Never blocks.
///
/// # Errors
/// [`Refusal`]
pub fn open(path: &Path) -> Result<File, Refusal> {
    checked(rustix::fs::open(path, FLAGS, Mode::empty())?.into())
}

/// Opens an existing file for reading. Its owner may have no right to write it, or one to
/// execute it: others have none. Never blocks.
///
/// # Errors
/// [`Refusal`]
pub fn open_to_read(path: &Path) -> Result<File, Refusal> {
    let flags = FLAGS.difference(OFlags::RDWR);
    let file: File = rustix::fs::open(path, flags, Mode::empty())?.into();
    match check(&file) {
        Err(Refusal::Mode(mode)) if mode & !OWNERS == 0 => Ok(file),
        checked => checked.map(|_| file),
    }
}

/// As [`open`], but makes an empty file if there is none, whatever the umask.
/// Never blocks.
///
/// # Errors
/// [`Refusal`], but never `Missing` unless the folder is.
pub fn open_or_create(path: &Path) -> Result<File, Refusal> {
    for _ in 0..TRIES {
        match open(path) {
            Err(Refusal::Missing) => {}
            opened => return opened,
        }
        let created = rustix::fs::open(path, FLAGS | OFlags::CREATE | OFlags::EXCL, mode());
        match created {
            Err(Errno::EXIST) => {}
            created => return with_mode(created?.into()),
        }
    }
    Err(Errno::AGAIN.into())
}

/// Makes a file without a name in `folder`, to be linked when it is complete; nothing
/// remains if the process ends before. The umask doesn't matter.
///
/// # Errors
/// [`Refusal`]
pub fn create_unnamed(folder: &Path) -> Result<File, Refusal> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    with_mode(rustix::fs::open(folder, flags, mode())?.into())
}

/// Whether an open file is a regular file of the effective user, with mode 0600.
///
/// # Errors
/// [`Refusal`]
pub fn check(file: &File) -> Result<Stat, Refusal> {
    let stat = fstat(file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Refusal::NotRegular);
    }
    if stat.st_uid != geteuid().as_raw() {
        return Err(Refusal::Foreign(stat.st_uid));
    }
    match stat.st_mode & 0o7777 {
        MODE => Ok(stat),
        mode => Err(Refusal::Mode(mode)),
    }
}

/// Permission bits of the owner.
const OWNERS: u32 = 0o700;
/// Bytes to which a file may grow (`ulimit -f`). Writing beyond isn't an error but raises a
/// signal that ends the process.
pub fn size_limit() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Whether a file may grow to that many bytes: see [`size_limit`].
///
/// # Errors
/// `EFBIG` if the limit is lower
pub fn allow_size(bytes: u64) -> io::Result<()> {
    match size_limit() < bytes {
        true => Err(Errno::FBIG.into()),
        false => Ok(()),
    }
}

/// How often a file may be created and removed by others between two attempts.
const TRIES: u32 = 100;
/// Flags of every open: no link is followed, nothing blocks, no child inherits it.
const FLAGS: OFlags = OFlags::RDWR
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

fn mode() -> Mode {
    Mode::from_raw_mode(MODE)
}

fn checked(file: File) -> Result<File, Refusal> {
    check(&file)?;
    Ok(file)
}

fn with_mode(file: File) -> Result<File, Refusal> {
    fchmod(&file, mode())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    fn folder() -> TempDir {
        tempfile::tempdir().expect("a folder can be made")
    }

    #[test]
    fn a_file_is_made_once_with_mode_0600_and_opened_again() {
        let folder = folder();
        let path = folder.path().join("made");
        let made = open_or_create(&path).expect("it is made");
        let stat = check(&made).expect("it is private");
        let again = open_or_create(&path).expect("it is there");
        assert_eq!(check(&again).expect("it is private").st_ino, stat.st_ino);
        std::fs::remove_file(&path).expect("it can be removed");
        assert!(matches!(open(&path), Err(Refusal::Missing)));
    }

    #[test]
    fn a_link_is_not_followed_and_what_it_names_is_not_made() {
        let folder = folder();
        let (link, victim) = (folder.path().join("link"), folder.path().join("victim"));
        symlink(&victim, &link).expect("a link can be made");
        assert!(matches!(open(&link), Err(Refusal::Link)));
        assert!(matches!(open_or_create(&link), Err(Refusal::Link)));
        assert!(!victim.exists(), "nothing was made through the link");
    }

    #[test]
    fn a_fifo_is_refused_without_blocking() {
        let folder = folder();
        let path = folder.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            FileType::Fifo,
            Mode::from_raw_mode(MODE),
            0,
        )
        .expect("a FIFO can be made");
        assert!(matches!(open(&path), Err(Refusal::NotRegular)));
        assert!(matches!(open_or_create(&path), Err(Refusal::NotRegular)));
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_what_to_do() {
        let folder = folder();
        let path = folder.path().join("exposed");
        std::fs::write(&path, "x").expect("it can be written");
        let open_to_all = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, open_to_all).expect("it can be opened up");
        let refusal = open(&path).expect_err("others can read it");
        assert!(refusal.to_string().contains("0600"), "{refusal}");
        assert!(matches!(open_to_read(&path), Err(Refusal::Mode(0o644))));
    }

    #[test]
    fn a_file_that_its_owner_only_reads_is_opened_for_that_alone() {
        let folder = folder();
        let path = folder.path().join("read-only");
        std::fs::write(&path, "x").expect("it can be written");
        let read_only = std::fs::Permissions::from_mode(0o400);
        std::fs::set_permissions(&path, read_only).expect("it can be shut");
        let file = open_to_read(&path).expect("its owner may read it");
        assert!(rustix::io::write(&file, b"y").is_err());
        assert!(open(&path).is_err());
    }
}
