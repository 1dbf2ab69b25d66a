//! The key that packets between nodes are authenticated with.
//!
//! A job's secret comes from its launcher (`LINTEL_SECRET`), or from a file of the
//! user's. The key is derived from the secret and the job's name, so that jobs of
//! one user don't take each other's packets.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const BYTES: usize = 32;
const CONTEXT: &str = "Lintel 2026-11 authenticator of packets between nodes";
/// Read and write for the owner alone.
const PRIVATE: u32 = 0o600;

/// Why there is no key.
#[derive(Debug)]
pub(crate) enum SecretError {
    /// `LINTEL_SECRET` isn't 64 hexadecimal digits.
    Malformed,
    /// No file is named, and there is no home directory.
    NoHome,
    /// The file can't be had.
    File(PathBuf, io::Error),
    /// Others can read the file, or it is another user's.
    Exposed(PathBuf),
    /// The file is shorter than a secret.
    Short(PathBuf),
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretError::Malformed => f.write_str("LINTEL_SECRET takes 64 hexadecimal digits"),
            SecretError::NoHome => f.write_str(
                "packets between nodes need a secret: start the program with yod, or name a \
                 file with PTL_SECRET_FILE",
            ),
            SecretError::File(path, error) => {
                write!(f, "the secret file {}: {error}", path.display())
            }
            SecretError::Exposed(path) => write!(
                f,
                "the secret file {0} must be yours and nobody else's: chmod 600 {0}",
                path.display()
            ),
            SecretError::Short(path) => write!(
                f,
                "the secret file {} must have {BYTES} bytes or more; remove it for a new one",
                path.display()
            ),
        }
    }
}

impl std::error::Error for SecretError {}

/// The key of a job.
///
/// # Errors
/// [`SecretError`]
pub(crate) fn key(job: &str) -> Result<[u8; 32], SecretError> {
    let mut material = match std::env::var("LINTEL_SECRET") {
        Ok(digits) if !digits.is_empty() => from_digits(&digits).ok_or(SecretError::Malformed)?,
        _ => from_file(&path()?)?,
    };
    material.extend_from_slice(job.as_bytes());
    Ok(blake3::derive_key(CONTEXT, &material))
}

fn from_digits(digits: &str) -> Option<Vec<u8>> {
    if digits.len() != 2 * BYTES || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..BYTES).map(|index| &digits[2 * index..2 * index + 2]);
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).ok())
        .collect()
}

fn path() -> Result<PathBuf, SecretError> {
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match (given("PTL_SECRET_FILE"), given("HOME")) {
        (Some(file), _) => Ok(file.into()),
        (None, Some(home)) => Ok(Path::new(&home).join(".config/lintel/secret")),
        (None, None) => Err(SecretError::NoHome),
    }
}

fn from_file(path: &Path) -> Result<Vec<u8>, SecretError> {
    let failed = |error| SecretError::File(path.to_owned(), error);
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(path).map_err(failed)?;
            File::open(path).map_err(failed)?
        }
        opened => opened.map_err(failed)?,
    };
    let metadata = file.metadata().map_err(failed)?;
    if metadata.mode() & 0o077 != 0 || metadata.uid() != nix::unistd::geteuid().as_raw() {
        return Err(SecretError::Exposed(path.to_owned()));
    }
    let mut secret = Vec::new();
    file.read_to_end(&mut secret).map_err(failed)?;
    if secret.len() < BYTES {
        return Err(SecretError::Short(path.to_owned()));
    }
    Ok(secret)
}

/// Makes a secret, whole from the moment that it has its name; that of another
/// process which was quicker is left.
fn make(path: &Path) -> io::Result<()> {
    let mut secret = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let draft = path.with_extension(std::process::id().to_string());
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(&draft)?;
    file.write_all(&secret)?;
    let named = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft)?;
    match named {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn place(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("lintel-secret-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory can be made");
        directory.join(name)
    }

    #[test]
    fn a_secret_is_made_once_and_is_private() {
        let path = place("made");
        let first = from_file(&path).expect("it is made");
        assert_eq!(from_file(&path).expect("it is there"), first);
        assert_eq!(first.len(), BYTES);
        let mode = std::fs::metadata(&path).expect("it is there").mode();
        assert_eq!(mode & 0o777, PRIVATE);
        std::fs::remove_file(path).expect("it can be removed");
    }

    #[test]
    fn a_secret_that_others_can_read_is_refused_with_what_to_do() {
        let path = place("exposed");
        std::fs::write(&path, [1; BYTES]).expect("it can be written");
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, open).expect("it can be opened up");
        let error = from_file(&path).expect_err("others can read it");
        assert!(error.to_string().contains("chmod 600"), "{error}");
        std::fs::remove_file(path).expect("it can be removed");
    }

    #[test]
    fn digits_make_a_secret_or_none() {
        assert_eq!(from_digits(&"0f".repeat(32)), Some(vec![15; BYTES]));
        assert_eq!(from_digits("0f"), None);
        assert_eq!(from_digits(&"+f".repeat(32)), None);
    }
}
