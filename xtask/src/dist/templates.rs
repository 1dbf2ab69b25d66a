//! `packaging/*.in`: files for pkg-config, CMake and systemd, with their `@WORD@`s filled in.
//!
//! They name other files relative to themselves, so that the whole prefix can be moved.

use super::place::Place;
use super::{
    CCI_PACKAGE_VERSION, COLLECTIVES_VERSION, PORTALS3_VERSION, STATIC_LIBRARIES, VERSION,
};
use crate::report::Outcome;
use crate::shell::{self, Tree};

/// Fills in all templates.
pub fn install(tree: &Tree, place: &Place) -> Outcome {
    for template in shell::files(&tree.path("packaging"), "in") {
        let name = super::stem(&template);
        let (package, version) = package_of(&name);
        let (folder, prefix) = match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("cmake") => (
                place.lib().join("cmake").join(package),
                prefix_from(place, "CMAKE_CURRENT_LIST_DIR", 2),
            ),
            Some("service") => (
                place.root().join("lib/systemd/user"),
                place.prefix().display().to_string(),
            ),
            _ => (
                place.lib().join("pkgconfig"),
                prefix_from(place, "pcfiledir", 1),
            ),
        };
        let text = fill(&shell::read(&template)?, |word| match word {
            "PREFIX" => Some(prefix.clone()),
            "LIBDIR" => Some(place.libdir().display().to_string()),
            "RUN_PATH" if place.is_system() => Some(String::new()),
            // A program finds the library wherever it is; LD_LIBRARY_PATH goes first.
            "RUN_PATH" => Some(" -Wl,-rpath,${libdir}".into()),
            "VERSION" => Some(version.into()),
            "LIBS_PRIVATE" => Some(STATIC_LIBRARIES.into()),
            _ => None,
        })
        .map_err(|word| format!("{}: nothing for @{word}@", template.display()))?;
        super::write(&folder.join(name), &text)?;
    }
    Ok(())
}

/// The prefix, from the folder that a variable of a file names, `deeper` below that of the
/// libraries. System folders may be links, which lead back elsewhere: they are named.
fn prefix_from(place: &Place, variable: &str, deeper: usize) -> String {
    match place.is_system() {
        true => place.prefix().display().to_string(),
        false => format!("${{{variable}}}/{}", place.up(deeper)),
    }
}

/// The package that a file of `packaging` belongs to, and its version.
fn package_of(file: &str) -> (&'static str, &'static str) {
    let others = [
        ("portals3", PORTALS3_VERSION),
        ("cci", CCI_PACKAGE_VERSION),
        ("ptlcoll", COLLECTIVES_VERSION),
    ];
    let own = others.into_iter().find(|(name, _)| file.starts_with(name));
    own.unwrap_or(("portals4", VERSION))
}

/// Replaces each known word between at-signs; an unknown one is the error.
fn fill(text: &str, known: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('@') {
        out.push_str(before);
        let Some((word, tail)) = after.split_once('@') else {
            out.push('@');
            rest = after;
            continue;
        };
        out.push_str(&known(word).ok_or(word)?);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn words_are_filled_and_unknown_ones_are_reported() {
        let known = |word: &str| (word == "PREFIX").then(|| "/opt/x".into());
        assert_eq!(
            fill("a=@PREFIX@/b x@y", known).as_deref(),
            Ok("a=/opt/x/b x@y")
        );
        assert_eq!(fill("@WHAT@", known), Err("WHAT".into()));
    }

    #[test]
    fn files_for_compilers_name_no_prefix_unless_it_is_the_systems() {
        let own = Place::at(Path::new("/opt/x"));
        assert_eq!(prefix_from(&own, "pcfiledir", 1), "${pcfiledir}/../..");
        let system = Place::packaged("lib/a", Path::new("/tmp"));
        assert_eq!(prefix_from(&system, "pcfiledir", 1), "/usr");
    }
}
