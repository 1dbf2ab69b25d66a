//! The variables of CCI, and which of their values aren't understood.

use crate::device::Transport;
use crate::log::{KINDS, report};
use lintel_runtime::Setting;
use std::sync::Once;

/// Every variable of CCI that the library reads.
pub const VARIABLES: [Setting; 3] = [
    Setting {
        name: "CCI_CONFIG",
        default: "none",
        values: "a file",
        meaning: "the devices of CCI; without it they are shared memory and each network interface but \
                  loopback",
    },
    Setting {
        name: "CCI_CTP",
        default: "all transports",
        values: "a list of sm, sock, tcp, verbs; after ^, of those that are dropped",
        meaning: "the transports of CCI whose devices are kept",
    },
    Setting {
        name: "CCI_DEBUG",
        default: "none",
        values: "a list of warn, info, all; mem, msg, peer, conn, err, func, drvr print nothing",
        meaning: "how much CCI logs on standard error",
    },
];

/// Reports values that aren't understood, whatever `CCI_DEBUG` says; once.
pub(crate) fn check_variables() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for line in wrong_in(|name| std::env::var(name).ok()) {
            report(&line);
        }
    });
}

fn wrong_in(lookup: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let transports = Transport::ALL.map(Transport::name);
    let (kept, logged) = (lookup("CCI_CTP"), lookup("CCI_DEBUG"));
    let kept = kept.filter(|list| !is_list_of(&transports, list.strip_prefix('^').unwrap_or(list)));
    let logged = logged.filter(|list| !is_list_of(&KINDS, list));
    let wrong = [("CCI_CTP", kept), ("CCI_DEBUG", logged)];
    let line = |(name, value): (&str, Option<String>)| {
        let value = value?;
        let variable = VARIABLES.iter().find(|variable| variable.name == name)?;
        let takes = variable.values;
        Some(format!("{name}={value} isn't understood; it takes {takes}"))
    };
    wrong.into_iter().filter_map(line).collect()
}

/// An empty list is one that isn't set.
fn is_list_of(names: &[&str], list: &str) -> bool {
    list.is_empty() || list.split(',').all(|word| names.contains(&word.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(name: &str, value: &str) -> Vec<String> {
        wrong_in(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn a_value_that_isnt_understood_names_its_variable_and_what_it_takes() {
        let takes = "a list of sm, sock, tcp, verbs; after ^, of those that are dropped";
        let line = format!("CCI_CTP=bogus isn't understood; it takes {takes}");
        assert_eq!(wrong("CCI_CTP", "bogus"), [line]);
        for (name, value) in [
            ("CCI_CTP", "^sm,gni"),
            ("CCI_DEBUG", "bogus"),
            ("CCI_DEBUG", "warn,,all"),
        ] {
            let lines = wrong(name, value);
            let start = format!("{name}={value} isn't understood; it takes ");
            assert!(
                lines.len() == 1 && lines[0].starts_with(&start),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn lists_that_are_understood_are_not_reported() {
        for (name, value) in [
            ("CCI_CTP", ""),
            ("CCI_CTP", "sm, sock"),
            ("CCI_CTP", "^verbs"),
            ("CCI_DEBUG", "warn,info"),
            ("CCI_DEBUG", "mem"),
        ] {
            assert!(wrong(name, value).is_empty(), "{name}={value}");
        }
    }
}
