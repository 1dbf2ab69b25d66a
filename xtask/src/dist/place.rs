//! Where files are installed.

use std::path::{Path, PathBuf};

use crate::shell::Arguments;

/// Folders of an installation.
pub struct Place {
    /// The prefix as programs see it.
    prefix: PathBuf,
    /// The folder of libraries, below the prefix.
    libdir: PathBuf,
    /// What stands before the prefix while a package is made.
    destdir: Option<PathBuf>,
}

impl Place {
    /// Everything below a prefix.
    pub fn at(prefix: &Path) -> Place {
        Place {
            prefix: absolute(prefix),
            libdir: "lib".into(),
            destdir: None,
        }
    }

    /// `/usr`, with libraries in `libdir`, below `destdir`: for a package of a distribution.
    pub fn packaged(libdir: &str, destdir: &Path) -> Place {
        Place {
            prefix: "/usr".into(),
            libdir: libdir.into(),
            destdir: Some(destdir.to_path_buf()),
        }
    }

    /// `--prefix DIR [--libdir DIR] [--destdir DIR]`; `DESTDIR` stands for the last one.
    ///
    /// # Errors
    /// No prefix, one that isn't absolute below a destdir, or a libdir outside it.
    pub fn read(words: &[&str]) -> Result<Place, String> {
        let words = Arguments::new(words)?.only(&["--prefix", "--libdir", "--destdir"])?;
        let prefix = words.get("--prefix").map(PathBuf::from);
        let prefix = prefix.ok_or("the prefix is missing: cargo xtask dist --prefix DIR")?;
        let variable = std::env::var_os("DESTDIR").filter(|value| !value.is_empty());
        let destdir = words.get("--destdir").map(PathBuf::from);
        let destdir = destdir.or(variable.map(PathBuf::from));
        if destdir.is_some() && !prefix.is_absolute() {
            return Err("below a DESTDIR the prefix is absolute, such as /usr".into());
        }
        let libdir = PathBuf::from(words.get("--libdir").unwrap_or("lib"));
        let libdir = libdir
            .strip_prefix(&prefix)
            .unwrap_or(&libdir)
            .to_path_buf();
        let mut parts = libdir.components();
        if !parts.all(|part| matches!(part, std::path::Component::Normal(_))) {
            return Err(format!("{} is not below the prefix", libdir.display()));
        }
        Ok(Place {
            prefix: absolute(&prefix),
            libdir,
            destdir,
        })
    }

    /// The prefix as this machine sees it now.
    pub fn root(&self) -> PathBuf {
        match &self.destdir {
            Some(before) => before.join(self.prefix.strip_prefix("/").unwrap_or(&self.prefix)),
            None => self.prefix.clone(),
        }
    }

    /// The folder of libraries as this machine sees it now.
    pub fn lib(&self) -> PathBuf {
        self.root().join(&self.libdir)
    }

    /// The folder of libraries below the prefix.
    pub fn libdir(&self) -> &Path {
        &self.libdir
    }

    /// The prefix as programs see it.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Whether compilers and the loader look there anyway.
    pub fn is_system(&self) -> bool {
        self.prefix == Path::new("/usr")
    }

    /// `..` as often as it takes from a folder `deeper` below that of libraries to the prefix.
    pub fn up(&self, deeper: usize) -> String {
        vec![".."; self.libdir.components().count() + deeper].join("/")
    }
}

/// Installed files name it wherever they are used.
fn absolute(prefix: &Path) -> PathBuf {
    std::path::absolute(prefix).unwrap_or_else(|_| prefix.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_made_below_its_destdir() {
        let words = ["--prefix", "/usr", "--libdir=lib/x86_64-linux-gnu"];
        let place = Place::read(&[&words[..], &["--destdir", "/tmp/a"]].concat());
        let place = place.expect("all is well");
        assert_eq!(place.root(), Path::new("/tmp/a/usr"));
        assert_eq!(place.lib(), Path::new("/tmp/a/usr/lib/x86_64-linux-gnu"));
        assert!(place.is_system());
        assert_eq!(place.up(1), "../../..");
    }

    #[test]
    fn folders_that_do_not_fit_are_refused() {
        assert!(Place::read(&[]).is_err());
        assert!(Place::read(&["--prefix", "/opt/x", "--libdir", "/usr/lib"]).is_err());
        assert!(Place::read(&["--prefix", "x", "--destdir", "/tmp"]).is_err());
        let own = Place::read(&["--prefix", "/opt/x", "--libdir", "/opt/x/lib64"]);
        assert_eq!(own.expect("it is below").libdir(), Path::new("lib64"));
    }
}
