//! Finds a program as a shell does.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::error::Error;

/// Whether `program` can be run. Checked before any rank starts, so that one message
/// reports it and not N.
///
/// # Errors
/// [`Error::NotFound`] and [`Error::NotExecutable`].
pub(crate) fn find(program: &OsStr) -> Result<(), Error> {
    let path = Path::new(program);
    if path.components().count() > 1 || program.as_encoded_bytes().contains(&b'/') {
        return match (is_executable(path), path.exists()) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::NotExecutable(program.into())),
            (false, false) => Err(Error::NotFound {
                program: program.into(),
                here: false,
            }),
        };
    }
    let search = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut directories =
        std::env::split_paths(&search).map(|directory: PathBuf| directory.join(path));
    if directories.any(|path| is_executable(&path)) {
        return Ok(());
    }
    Err(Error::NotFound {
        program: program.into(),
        here: is_executable(path),
    })
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
