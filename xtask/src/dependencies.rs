//! The dependencies, as `cargo metadata` describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::shell::{self, Tree};

/// A crate of the dependency graph, ours or a third party's.
#[derive(Clone, Debug)]
pub struct Dependency {
    pub name: String,
    pub version: String,
    /// As `Cargo.toml` has it: an SPDX expression.
    pub licence: String,
    pub repository: String,
    /// Where it is from; nothing where it is of this tree.
    pub source: Option<String>,
    pub folder: PathBuf,
    is_macro: bool,
}

/// Crates by their ids, and who needs whom at run time.
pub struct Dependencies {
    pub all: BTreeMap<String, Dependency>,
    needs: BTreeMap<String, Vec<String>>,
}

impl Dependencies {
    /// Those of a manifest: of every platform, or of the one that this is.
    pub fn read(tree: &Tree, manifest: &Path, platform: Option<&str>) -> Result<Self, String> {
        let mut cargo = tree.cargo();
        cargo.args(["metadata", "--locked", "--format-version", "1"]);
        cargo.arg("--manifest-path").arg(manifest);
        if let Some(platform) = platform {
            cargo.args(["--filter-platform", platform]);
        }
        let text = shell::output(&mut cargo)?;
        let metadata: Value =
            serde_json::from_str(&text).map_err(|why| format!("cargo metadata: {why}"))?;
        let all = list(&metadata["packages"]).iter();
        let nodes = list(&metadata["resolve"]["nodes"]).iter();
        Ok(Dependencies {
            all: all.map(|p| (text_of(&p["id"]), package(p))).collect(),
            needs: nodes.map(|n| (text_of(&n["id"]), needs(n))).collect(),
        })
    }

    /// What is linked into crates of this tree, by name and version: their needs, and the
    /// needs of those, but for what only builds or tests have, and macros.
    pub fn linked_into(&self, ours: &[&str]) -> Vec<&Dependency> {
        let begin = self.all.iter().filter(|(_, package)| {
            package.source.is_none() && ours.contains(&package.name.as_str())
        });
        let mut left: Vec<&str> = begin.map(|(id, _)| id.as_str()).collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = left.pop() {
            let is_macro = self.all.get(id).is_none_or(|package| package.is_macro);
            if !is_macro && seen.insert(id) {
                left.extend(self.needs.get(id).into_iter().flatten().map(String::as_str));
            }
        }
        let found = seen.into_iter().filter_map(|id| self.all.get(id));
        let mut found: Vec<&Dependency> = found.filter(|p| p.source.is_some()).collect();
        found.sort_by(|one, two| (&one.name, &one.version).cmp(&(&two.name, &two.version)));
        found
    }
}

/// The platform that the compiler builds for.
pub fn platform() -> Result<String, String> {
    let said = shell::output(Command::new(rustc()).arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from)
        .ok_or("rustc -vV names no host".into())
}

/// The compiler that cargo uses.
pub fn rustc() -> PathBuf {
    std::env::var_os("RUSTC").map_or_else(|| "rustc".into(), PathBuf::from)
}

fn package(package: &Value) -> Dependency {
    let manifest = PathBuf::from(text_of(&package["manifest_path"]));
    let mut kinds = list(&package["targets"])
        .iter()
        .flat_map(|target| list(&target["kind"]));
    Dependency {
        name: text_of(&package["name"]),
        version: text_of(&package["version"]),
        licence: text_of(&package["license"]),
        repository: text_of(&package["repository"]),
        source: package["source"].as_str().map(String::from),
        folder: manifest.parent().map(Path::to_path_buf).unwrap_or_default(),
        is_macro: kinds.any(|kind| kind == "proc-macro"),
    }
}

fn needs(node: &Value) -> Vec<String> {
    let at_run_time = |arrow: &&Value| {
        let mut kinds = list(&arrow["dep_kinds"]).iter();
        kinds.any(|kind| kind["kind"].is_null())
    };
    let arrows = list(&node["deps"]).iter().filter(at_run_time);
    arrows.map(|arrow| text_of(&arrow["pkg"])).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or("").into()
}

#[cfg(test)]
impl Dependency {
    /// One that is nowhere.
    pub fn for_test(name: &str, version: &str, source: &str, licence: &str) -> Dependency {
        Dependency {
            name: name.into(),
            version: version.into(),
            licence: licence.into(),
            repository: String::new(),
            source: Some(source.into()),
            folder: PathBuf::new(),
            is_macro: false,
        }
    }
}
