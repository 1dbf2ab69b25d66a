//! Variables that look like ours and aren't: a name that is mistyped would silently leave the
//! default.

use crate::log::{Level, log};
use crate::settings::{LAUNCHERS_SETTINGS, SETTINGS};
use std::sync::Once;

/// What the names of a Portals library's variables begin with.
const PREFIX: &str = "PTL_";
/// Letters that are inserted, left out, exchanged or swapped with a neighbour, up to which one
/// name may be meant for another.
const NEAR: usize = 3;

/// Variables of the reference implementation that programs set by themselves, so that their users can't
/// mend it (PDHT): they tune memory registration and progress, which this library has otherwise.
const REFERENCES: [&str; 3] = [
    "PTL_DISABLE_MEM_REG_CACHE",
    "PTL_IGNORE_UMMUNOTIFY",
    "PTL_PROGRESS_NOSLEEP",
];

/// Warns of each variable of the environment that begins as ours do and isn't one; once.
pub(crate) fn warn_of_unknown() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for words in unknown(names) {
            log(Level::Warn, &words);
        }
    });
}

fn unknown(names: impl Iterator<Item = String>) -> Vec<String> {
    let ours = SETTINGS.iter().chain(&LAUNCHERS_SETTINGS);
    let is_known =
        |name: &str| REFERENCES.contains(&name) || ours.clone().any(|setting| setting.name == name);
    let mut unknown: Vec<String> = names
        .filter(|name| name.starts_with(PREFIX) && !is_known(name))
        .collect();
    unknown.sort();
    unknown.iter().map(|name| warning(name)).collect()
}

fn warning(name: &str) -> String {
    let known = SETTINGS.iter().map(|setting| setting.name);
    let nearest = known
        .map(|known| (strsim::osa_distance(name, known), known))
        .min();
    match nearest {
        Some((0..=NEAR, known)) => {
            format!("{name} is no variable of this library: is {known} meant?")
        }
        _ => format!("{name} is no variable of this library: `lintel info --env` lists them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_is_reported_with_the_one_that_may_be_meant() {
        let names = [
            "PTL_NLA",
            "HOME",
            "PTL_NAL",
            "PTL_MODUS",
            "PTL_SOMETHING_ELSE",
            "PTL_MY_RID",
        ];
        let warnings = unknown(names.into_iter().map(String::from));
        assert_eq!(
            warnings,
            [
                "PTL_MODUS is no variable of this library: is PTL_MODE meant?",
                "PTL_NLA is no variable of this library: is PTL_NAL meant?",
                "PTL_SOMETHING_ELSE is no variable of this library: `lintel info --env` lists them",
            ]
        );
    }
    #[test]
    fn what_programs_set_for_the_reference_is_not_reported() {
        let names = ["PTL_IGNORE_UMMUNOTIFY", "PTL_PROGRESS_NOSLEEP"];
        let warnings = unknown(names.into_iter().map(String::from));
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}
