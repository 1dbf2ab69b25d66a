//! The key that packets between nodes are authenticated with.
//!
//! A job's secret comes from its launcher, for an agent by a pipe ([`Settings::secret`])
//! and for other processes in `LINTEL_SECRET`, or from a file of the user's. The key is
//! derived from the secret and the job's name, so that jobs of one user don't take each
//! other's packets.

use crate::secret::{BYTES, Secret};
use crate::settings::Settings;
use lintel_private_file::{Refusal, open_or_create, open_to_read};
use std::fmt;
use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

const VARIABLE: &str = "PTL_SECRET_FILE";
/// Separates this use of BLAKE3 from others.
const CONTEXT: &str = "Lintel 2026-11 authenticator of packets between nodes";
/// Mode of a folder that only its owner can use.
const FOLDER_MODE: u32 = 0o700;

/// Why there is no key.
#[derive(Debug)]
pub(crate) enum SecretError {
    /// `LINTEL_SECRET` isn't 64 hexadecimal digits.
    Malformed,
    /// No file is named, and there is no home directory.
    NoHome,
    /// `PTL_SECRET_FILE` names a file in a folder that isn't there.
    NoFolder(PathBuf),
    /// The file can't be read or made.
    File(PathBuf, io::Error),
    /// The name is a symbolic link.
    Link(PathBuf),
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
            SecretError::NoFolder(path) => write!(
                f,
                "{VARIABLE} names a file in {}, which is no folder",
                path.display()
            ),
            SecretError::File(path, error) => write!(
                f,
                "the secret file {}: {error}; {VARIABLE} names another one",
                path.display()
            ),
            SecretError::Link(path) => write!(
                f,
                "the secret file {} is a symbolic link, which is never followed: name the file \
                 itself with PTL_SECRET_FILE",
                path.display()
            ),
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

/// Derives the key of a job.
///
/// # Errors
/// [`SecretError`]
pub(crate) fn key(settings: &Settings) -> Result<[u8; 32], SecretError> {
    derive(settings.secret.as_ref(), &settings.job)
}

/// The key of a job by its name, for networks that no Portals interface opens.
///
/// # Errors
/// What the user should read.
pub fn key_of(job: &str) -> Result<[u8; 32], String> {
    derive(None, job).map_err(|error| error.to_string())
}

fn derive(secret: Option<&Secret>, job: &str) -> Result<[u8; 32], SecretError> {
    let given = std::env::var("LINTEL_SECRET").unwrap_or_default();
    let mut material = match secret {
        Some(Secret(bytes)) => bytes.to_vec(),
        None if given.is_empty() => from_file(&path()?.existing()?)?,
        None => {
            let Secret(bytes) = given.parse().map_err(|_| SecretError::Malformed)?;
            bytes.to_vec()
        }
    };
    material.extend_from_slice(job.as_bytes());
    Ok(blake3::derive_key(CONTEXT, &material))
}

/// Where a job's secret comes from, for the log.
pub(crate) fn source(settings: &Settings) -> String {
    let is_given = std::env::var_os("LINTEL_SECRET").is_some_and(|secret| !secret.is_empty());
    match (&settings.secret, is_given, path()) {
        (Some(_), ..) => "the launcher".into(),
        (None, true, _) => "LINTEL_SECRET".into(),
        (None, false, Ok(named)) => named.path.display().to_string(),
        (None, false, Err(error)) => error.to_string(),
    }
}

/// The secret file that the environment names.
fn path() -> Result<Named, SecretError> {
    let given = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    match (given(VARIABLE), given("HOME")) {
        (Some(file), _) => Ok(Named {
            path: file.into(),
            is_typed: true,
        }),
        (None, Some(home)) => Ok(Named {
            path: Path::new(&home).join(".config/lintel/secret"),
            is_typed: false,
        }),
        (None, None) => Err(SecretError::NoHome),
    }
}

/// A secret's file, there or not.
struct Named {
    path: PathBuf,
    is_typed: bool,
}

impl Named {
    /// The path, unless a user typed it and its folder is missing: only the default one's
    /// folders are made.
    fn existing(self) -> Result<PathBuf, SecretError> {
        let folder = self.path.parent().filter(|folder| *folder != Path::new(""));
        match folder {
            Some(folder) if self.is_typed && !folder.is_dir() => {
                Err(SecretError::NoFolder(folder.into()))
            }
            _ => Ok(self.path),
        }
    }
}

fn from_file(path: &Path) -> Result<Vec<u8>, SecretError> {
    let failed = |error| SecretError::File(path.to_owned(), error);
    let opened = match open_to_read(path) {
        Err(Refusal::Missing) => {
            make(path).map_err(failed)?;
            open_to_read(path)
        }
        opened => opened,
    };
    let mut file = opened.map_err(|refusal| match refusal {
        Refusal::Link => SecretError::Link(path.to_owned()),
        Refusal::Foreign(_) | Refusal::Mode(_) => SecretError::Exposed(path.to_owned()),
        refusal => failed(refusal.into()),
    })?;
    let mut secret = Vec::new();
    file.read_to_end(&mut secret).map_err(failed)?;
    if secret.len() < BYTES {
        return Err(SecretError::Short(path.to_owned()));
    }
    Ok(secret)
}

/// Makes a secret, whole from the moment that it has its name; that of another
/// process which was quicker is left. The draft has a name that no process had before,
/// since one that was killed may have left its own, and not every file system of home
/// directories knows files without names.
fn make(path: &Path) -> io::Result<()> {
    let mut random = File::open("/dev/urandom")?;
    let (mut secret, mut suffix) = ([0; BYTES], [0; 8]);
    random.read_exact(&mut secret)?;
    random.read_exact(&mut suffix)?;
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    lintel_private_file::allow_size(BYTES as u64)?;
    let draft = path.with_extension(format!("{:016x}", u64::from_ne_bytes(suffix)));
    let mut file = open_or_create(&draft)?;
    let named = file
        .write_all(&secret)
        .and_then(|()| std::fs::hard_link(&draft, path));
    std::fs::remove_file(&draft)?;
    match named {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Makes the folders that are missing, each for the owner alone whatever the umask says.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folder(parent)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
        Ok(()) => std::fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)),
        // Another process was quicker.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    fn temporary() -> TempDir {
        tempfile::tempdir().expect("a folder can be made")
    }

    fn mode_of(path: &Path) -> u32 {
        let metadata = std::fs::metadata(path).expect("it is there");
        metadata.permissions().mode() & 0o7777
    }

    #[test]
    fn a_secret_is_made_once_and_is_private() {
        let scratch = temporary();
        let path = scratch.path().join("made");
        let first = from_file(&path).expect("it is made");
        assert_eq!(from_file(&path).expect("it is there"), first);
        assert_eq!(first.len(), BYTES);
        assert_eq!(mode_of(&path), lintel_private_file::MODE);
    }

    #[test]
    fn the_folders_of_a_new_secret_are_its_owners_alone_and_hold_nothing_else() {
        let scratch = temporary();
        let config = scratch.path().join("config");
        let folder = config.join("lintel");
        from_file(&folder.join("secret")).expect("it is made");
        assert_eq!([mode_of(&config), mode_of(&folder)], [FOLDER_MODE; 2]);
        let entries = std::fs::read_dir(&folder).expect("it is there");
        assert_eq!(entries.count(), 1);
    }

    #[test]
    fn the_folders_of_a_path_that_a_user_typed_are_not_made() {
        let scratch = temporary();
        let missing = scratch.path().join("missing");
        let named = |is_typed| Named {
            path: missing.join("secret"),
            is_typed,
        };
        let error = named(true).existing().expect_err("there is no such folder");
        assert!(error.to_string().contains("PTL_SECRET_FILE"), "{error}");
        assert!(!missing.exists());
        assert!(named(false).existing().is_ok());
        let beside = Named {
            path: "secret".into(),
            is_typed: true,
        };
        assert!(beside.existing().is_ok());
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named_and_the_variable_as_what_names_another() {
        let path = Path::new("/proc/.config/lintel/secret");
        let error = from_file(path)
            .expect_err("nothing can be made there")
            .to_string();
        assert!(
            error.starts_with("the secret file /proc/.config/lintel/secret: "),
            "{error}"
        );
        assert!(
            error.ends_with("; PTL_SECRET_FILE names another one"),
            "{error}"
        );
    }

    #[test]
    fn a_folder_that_is_there_keeps_its_mode() {
        let scratch = temporary();
        let folder = scratch.path().join("open");
        std::fs::create_dir(&folder).expect("it can be made");
        let open = Permissions::from_mode(0o755);
        std::fs::set_permissions(&folder, open).expect("it can be opened up");
        from_file(&folder.join("secret")).expect("it is made");
        assert_eq!(mode_of(&folder), 0o755);
    }

    #[test]
    fn the_draft_of_a_killed_process_with_the_same_number_is_in_nobodys_way() {
        let scratch = temporary();
        let path = scratch.path().join("drafted");
        let stale = path.with_extension(std::process::id().to_string());
        std::fs::write(&stale, "half").expect("it can be written");
        from_file(&path).expect("it is made");
        assert!(path.exists() && stale.exists());
    }

    #[test]
    fn a_secret_behind_a_link_is_refused_and_none_is_made_there() {
        let scratch = temporary();
        let (link, target) = (scratch.path().join("link"), scratch.path().join("target"));
        symlink(&target, &link).expect("a link can be made");
        let error = from_file(&link).expect_err("it is a link");
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert!(!target.exists());
    }

    #[test]
    fn a_secret_that_others_can_read_is_refused_with_what_to_do() {
        let scratch = temporary();
        let path = scratch.path().join("exposed");
        std::fs::write(&path, [1; BYTES]).expect("it can be written");
        let open = Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, open).expect("it can be opened up");
        let error = from_file(&path).expect_err("others can read it");
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }

    #[test]
    fn a_secret_that_is_given_goes_before_all_others() {
        let digits = "0f".repeat(BYTES);
        let mut settings = Settings::from_env().expect("the environment says nothing");
        settings.secret = digits.parse().ok();
        let key_of = |job: &str| {
            let job = job.to_owned();
            key(&Settings {
                job,
                ..settings.clone()
            })
            .expect("it is given")
        };
        let material = [&[15; BYTES][..], b"a"].concat();
        assert_eq!(key_of("a"), blake3::derive_key(CONTEXT, &material));
        assert_ne!(key_of("a"), key_of("b"));
    }
}
