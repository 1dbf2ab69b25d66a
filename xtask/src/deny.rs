//! Licences, sources and duplicates of the crates of others, against deny.toml.
//!
//! The file is cargo-deny's, and cargo-deny reads it too where it is installed. The checks
//! here need nothing but cargo: to build cargo-deny takes longer than all of them together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use toml::{Table, Value};

use crate::dependencies::{Dependencies, Dependency};
use crate::report::{Outcome, Report};
use crate::shell::{self, Tree};

const REGISTRY: &str = "registry+";

/// What deny.toml allows, of licences, sources and duplicates.
struct Policy {
    licences: BTreeSet<String>,
    /// More of them, by crate.
    exceptions: BTreeMap<String, BTreeSet<String>>,
    /// `name@version` of what is there beside another version.
    duplicates: BTreeSet<String>,
}

/// Our own checks of both lock files, and cargo-deny where there is one.
pub fn run(tree: &Tree, report: &mut Report) {
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        report.check(&format!("deny: crates of {manifest}"), || {
            check(tree, manifest)
        });
    }
    if shell::output(tree.cargo().args(["deny", "--version"])).is_err() {
        return report.not_applicable("deny: cargo-deny (cargo install --locked cargo-deny)");
    }
    let deny = |what: &[&str]| {
        let offline = ["deny", "--offline", "check", "--hide-inclusion-graph"];
        shell::run(tree.cargo().args(offline).args(what))
    };
    report.check("deny: cargo-deny", || {
        deny(&["licenses", "bans", "sources"])
    });
    match database_of_advisories() {
        Some(_) => {
            report.check("deny: advisories", || deny(&["advisories"]));
        }
        None => report.not_applicable("deny: advisories (no copy of their database here)"),
    }
}

/// Where cargo-deny keeps what it has fetched.
fn database_of_advisories() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let databases = std::fs::read_dir(home.join("advisory-dbs")).ok()?;
    databases.flatten().map(|entry| entry.path()).next()
}

fn check(tree: &Tree, manifest: &str) -> Outcome {
    let policy = Policy::read(tree)?;
    let dependencies = Dependencies::read(tree, &tree.path(manifest), None)?;
    let others = dependencies.all.values().filter(|d| d.source.is_some());
    let others: Vec<&Dependency> = others.collect();
    let mut wrong: Vec<String> = others.iter().filter_map(|d| policy.judge(d)).collect();
    // The fuzz targets are a workspace of their own, and no part of what is installed.
    if manifest == "Cargo.toml" {
        wrong.extend(policy.unlisted(&others));
    }
    wrong.extend(several_sources(&others));
    match wrong.as_slice() {
        [] => {
            println!("   {} crates", others.len());
            Ok(())
        }
        wrong => Err(wrong.join("\n        ")),
    }
}

/// What is wrong if crates don't come from one registry.
fn several_sources(all: &[&Dependency]) -> Option<String> {
    let sources: BTreeSet<&str> = all.iter().filter_map(|d| d.source.as_deref()).collect();
    (sources.len() > 1).then(|| format!("crates come from several sources: {sources:?}"))
}

impl Policy {
    fn read(tree: &Tree) -> Result<Policy, String> {
        let text = shell::read(&tree.path("deny.toml"))?;
        let table: Table = text.parse().map_err(|why| format!("deny.toml: {why}"))?;
        let strings = |section: &str, key: &str| -> BTreeSet<String> {
            let values = table.get(section).and_then(|section| section.get(key));
            let values = values.and_then(Value::as_array).into_iter().flatten();
            values
                .filter_map(|v| v.as_str().map(String::from))
                .collect()
        };
        let exceptions = table.get("licenses").and_then(|l| l.get("exceptions"));
        let exceptions = exceptions.and_then(Value::as_array).into_iter().flatten();
        let exceptions = exceptions.filter_map(|exception| {
            let allowed = exception.get("allow")?.as_array()?.iter();
            let allowed = allowed.filter_map(|v| v.as_str().map(String::from));
            Some((
                exception.get("crate")?.as_str()?.to_owned(),
                allowed.collect(),
            ))
        });
        let skipped = table.get("bans").and_then(|bans| bans.get("skip"));
        let skipped = skipped.and_then(Value::as_array).into_iter().flatten();
        let named = skipped.filter_map(|skip| skip.get("crate")?.as_str());
        Ok(Policy {
            licences: strings("licenses", "allow"),
            exceptions: exceptions.collect(),
            duplicates: named.map(String::from).collect(),
        })
    }

    /// What is wrong with a crate.
    fn judge(&self, of: &Dependency) -> Option<String> {
        let name = format!("{} {}", of.name, of.version);
        let source = of.source.as_deref().unwrap_or_default();
        if !source.starts_with(REGISTRY) {
            return Some(format!("{name} is from {source}, which isn't allowed"));
        }
        let mut licences = self.licences.clone();
        licences.extend(self.exceptions.get(&of.name).into_iter().flatten().cloned());
        match allows(&of.licence, &licences) {
            Ok(true) => None,
            Ok(false) => Some(format!("{name}: the licence {} isn't allowed", of.licence)),
            Err(why) => Some(format!("{name}: licence {:?}: {why}", of.licence)),
        }
    }

    /// Crates of several versions of which not all but one are listed, and listed ones that
    /// aren't there.
    fn unlisted(&self, all: &[&Dependency]) -> Vec<String> {
        let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for of in all {
            versions.entry(&of.name).or_default().insert(&of.version);
        }
        let listed = |name: &str, version: &str| {
            let full = format!("{name}@{version}");
            self.duplicates.contains(&full)
        };
        let mut wrong = Vec::new();
        for (name, versions) in &versions {
            let left = versions.iter().filter(|version| !listed(name, version));
            if left.count() > 1 {
                let each: Vec<&str> = versions.iter().copied().collect();
                let each = each.join(" and ");
                wrong.push(format!(
                    "{name} is there as {each}: one of them, or a line in deny.toml"
                ));
            }
        }
        let gone = self.duplicates.iter().filter(|full| {
            let (name, version) = full.split_once('@').unwrap_or((full, ""));
            versions
                .get(name)
                .is_none_or(|v| !v.contains(version) || v.len() < 2)
        });
        wrong.extend(gone.map(|full| format!("deny.toml lists {full}, which is no duplicate")));
        wrong
    }
}

/// Whether an SPDX expression can be fulfilled by licences that are allowed. A slash, of
/// old manifests, means OR.
fn allows(expression: &str, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser {
        words: &words,
        allowed,
    };
    let answer = parser.any()?;
    match parser.words {
        [] => Ok(answer),
        [word, ..] => Err(format!("{word} isn't understood")),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a BTreeSet<String>,
}

impl Parser<'_> {
    /// `all OR all OR …`
    fn any(&mut self) -> Result<bool, String> {
        let mut answer = self.all()?;
        while self.take("OR") {
            answer |= self.all()?;
        }
        Ok(answer)
    }

    /// `one AND one AND …`
    fn all(&mut self) -> Result<bool, String> {
        let mut answer = self.one()?;
        while self.take("AND") {
            answer &= self.one()?;
        }
        Ok(answer)
    }

    /// A licence, perhaps with an exception, or an expression in parentheses.
    fn one(&mut self) -> Result<bool, String> {
        if self.take("(") {
            let answer = self.any()?;
            return match self.take(")") {
                true => Ok(answer),
                false => Err("a parenthesis isn't closed".into()),
            };
        }
        let (licence, rest) = self.words.split_first().ok_or("a licence is missing")?;
        self.words = rest;
        if !self.take("WITH") {
            return Ok(self.allowed.contains(*licence));
        }
        let (exception, rest) = self.words.split_first().ok_or("an exception is missing")?;
        self.words = rest;
        Ok(self
            .allowed
            .contains(&format!("{licence} WITH {exception}")))
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> BTreeSet<String> {
        ["MIT", "Zlib"].map(String::from).into()
    }

    #[test]
    fn an_expression_is_allowed_if_one_of_its_choices_is() {
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("GPL-3.0-only OR MIT", true),
            ("Unlicense/MIT", true),
            ("MIT AND GPL-3.0-only", false),
            ("(MIT OR GPL-3.0-only) AND Zlib", true),
            ("GPL-3.0-only OR MIT AND Zlib", true),
            ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", false),
        ] {
            assert_eq!(allows(expression, &allowed()), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn what_is_no_expression_is_reported() {
        for expression in ["", "MIT OR", "(MIT", "MIT MIT", "MIT WITH"] {
            assert!(allows(expression, &allowed()).is_err(), "{expression}");
        }
    }

    fn dependency(version: &str, source: &str, licence: &str) -> Dependency {
        Dependency::for_test("crate", version, source, licence)
    }

    #[test]
    fn a_crate_of_a_git_repository_or_of_no_licence_is_refused() {
        let policy = Policy {
            licences: allowed(),
            exceptions: [("crate".to_owned(), ["ISC".to_owned()].into())].into(),
            duplicates: BTreeSet::new(),
        };
        let judge = |source, licence| policy.judge(&dependency("1.0.0", source, licence));
        assert_eq!(judge("registry+https://registry", "MIT"), None);
        assert_eq!(judge("registry+https://registry", "ISC"), None);
        assert!(judge("git+https://registry", "MIT").is_some());
        assert!(judge("registry+https://registry", "").is_some());
    }

    #[test]
    fn a_second_registry_is_refused() {
        let from = |source| dependency("1.0.0", source, "MIT");
        let (one, other) = (from("registry+one"), from("registry+other"));
        assert_eq!(several_sources(&[&one, &one]), None);
        assert!(several_sources(&[&one, &other]).is_some());
    }

    #[test]
    fn a_second_version_is_listed_or_refused() {
        let (one, two) = (dependency("1.0.0", "", ""), dependency("2.0.0", "", ""));
        let with = |listed: &[&str]| Policy {
            licences: BTreeSet::new(),
            exceptions: BTreeMap::new(),
            duplicates: listed.iter().map(|full| (*full).into()).collect(),
        };
        assert_eq!(with(&[]).unlisted(&[&one, &two]).len(), 1);
        assert_eq!(with(&["crate@1.0.0"]).unlisted(&[&one, &two]).len(), 0);
        assert_eq!(with(&["crate@1.0.0"]).unlisted(&[&two]).len(), 1);
        assert_eq!(with(&[]).unlisted(&[&one]).len(), 0);
    }
}
