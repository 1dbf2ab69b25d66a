//! Finds rings of imports among the modules of a crate: `a` uses `b`, and `b` uses `a`.
//!
//! A module is a file or folder directly below `src`. It uses another one if a path in it
//! begins with `crate::other` (or `super::other` in the module's own file). What `lib.rs`
//! re-exports counts for `lib.rs`, which no ring is looked for in. Tests don't count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::{self, Visit};

use crate::report::Outcome;
use crate::shell::{self, Tree};

/// Crates whose modules form layers.
const LAYERED: [&str; 4] = ["host/bridge", "host/presence", "host/runtime", "launch/yod"];

type Graph = BTreeMap<String, BTreeSet<String>>;

pub fn check(tree: &Tree) -> Outcome {
    let mut wrong = Vec::new();
    for folder in LAYERED {
        let graph = read(&tree.path(folder).join("src"))?;
        let rings = rings(&graph);
        wrong.extend(
            rings
                .iter()
                .map(|ring| format!("{folder}: a ring of imports: {ring}")),
        );
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n        ")),
    }
}

/// Which module of a crate uses which.
fn read(src: &Path) -> Result<Graph, String> {
    let mut sources: Vec<(String, String)> = Vec::new();
    for path in shell::files_below(src, "rs") {
        let inside = path.strip_prefix(src).unwrap_or(&path).with_extension("");
        let module = inside
            .components()
            .next()
            .map(|c| c.as_os_str().to_string_lossy());
        let module = module.unwrap_or_default().into_owned();
        if module != "lib" && module != "main" && module != "bin" {
            sources.push((module, shell::read(&path)?));
        }
    }
    let mut graph: Graph = sources
        .iter()
        .map(|(module, _)| (module.clone(), BTreeSet::new()))
        .collect();
    for (module, source) in &sources {
        let used = uses(source).map_err(|e| format!("{}/{module}: {e}", src.display()))?;
        let known: Vec<String> = used
            .into_iter()
            .filter(|used| graph.contains_key(used) && used != module)
            .collect();
        graph.entry(module.clone()).or_default().extend(known);
    }
    Ok(graph)
}

/// The first segments behind `crate::`, and behind a `super::` of the file itself.
fn uses(source: &str) -> syn::Result<BTreeSet<String>> {
    let mut reader = Reader::default();
    reader.visit_file(&syn::parse_file(source)?);
    Ok(reader.found)
}

#[derive(Default)]
struct Reader {
    found: BTreeSet<String>,
    /// Modules written inside the file, around the present place.
    depth: usize,
}

impl Reader {
    fn segment(&mut self, first: &syn::Ident, second: &syn::Ident) {
        if first == "crate" || (first == "super" && self.depth == 0) {
            self.found.insert(second.to_string());
        }
    }
}

/// Whether an item stands behind `cfg(test)` or is a test itself.
pub fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute.parse_args::<syn::Path>();
        let is_test = condition.is_ok_and(|path| path.is_ident("test"));
        attribute.path().is_ident("test") || (attribute.path().is_ident("cfg") && is_test)
    })
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if !is_test(&node.attrs) {
            self.depth += 1;
            visit::visit_item_mod(self, node);
            self.depth -= 1;
        }
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        if !is_test(&node.attrs) {
            visit::visit_item_impl(self, node);
        }
    }

    fn visit_use_path(&mut self, node: &'ast syn::UsePath) {
        match &*node.tree {
            syn::UseTree::Path(next) => self.segment(&node.ident, &next.ident),
            syn::UseTree::Name(next) => self.segment(&node.ident, &next.ident),
            syn::UseTree::Rename(next) => self.segment(&node.ident, &next.ident),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    match tree {
                        syn::UseTree::Path(next) => self.segment(&node.ident, &next.ident),
                        syn::UseTree::Name(next) => self.segment(&node.ident, &next.ident),
                        _ => {}
                    }
                }
            }
            syn::UseTree::Glob(_) => {}
        }
        visit::visit_use_path(self, node);
    }

    fn visit_path(&mut self, node: &'ast syn::Path) {
        let mut segments = node.segments.iter();
        if let (Some(first), Some(second)) = (segments.next(), segments.next()) {
            self.segment(&first.ident, &second.ident);
        }
        visit::visit_path(self, node);
    }
}

/// One ring for each group of modules that use each other, as `a → b → a`.
fn rings(graph: &Graph) -> Vec<String> {
    let mut rings = Vec::new();
    let mut seen = BTreeSet::new();
    for start in graph.keys() {
        if seen.contains(start) {
            continue;
        }
        if let Some(ring) = path_back(graph, start) {
            seen.extend(ring.iter().cloned());
            rings.push(ring.join(" → "));
        }
    }
    rings
}

/// The shortest way from a module to itself.
fn path_back(graph: &Graph, start: &str) -> Option<Vec<String>> {
    let mut paths = std::collections::VecDeque::from([vec![start.to_string()]]);
    let mut seen = BTreeSet::new();
    while let Some(path) = paths.pop_front() {
        for next in path
            .last()
            .and_then(|last| graph.get(last))
            .into_iter()
            .flatten()
        {
            let mut longer = path.clone();
            longer.push(next.clone());
            if next == start {
                return Some(longer);
            }
            if seen.insert(next) {
                paths.push_back(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(arrows: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::new();
        for (from, to) in arrows {
            graph.entry((*to).into()).or_default();
            graph
                .entry((*from).into())
                .or_default()
                .insert((*to).into());
        }
        graph
    }

    #[test]
    fn a_ring_is_found_and_a_chain_is_none() {
        assert_eq!(rings(&graph(&[("a", "b"), ("b", "c")])), [""; 0]);
        let found = rings(&graph(&[("a", "b"), ("b", "c"), ("c", "b")]));
        assert_eq!(found, ["b → c → b"]);
    }

    #[test]
    fn modules_are_used_by_imports_and_by_paths_outside_tests() {
        let source = "use crate::a::X; use crate::{b, c::Y}; fn f() { crate::d::g(); }
            use super::e; mod inner { use super::outer; }
            #[cfg(test)] mod tests { use crate::only_in_tests::Z; }
            #[cfg(test)] impl X { fn f() { crate::only_in_tests::g(); } }";
        let found: Vec<String> = uses(source).expect("it is Rust").into_iter().collect();
        assert_eq!(found, ["a", "b", "c", "d", "e"]);
    }
}
