//! What one source file holds.

use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::rings::is_test;
use crate::shell;

/// Arguments from which on a struct reads better.
const MANY_ARGUMENTS: usize = 6;
/// Words up to which a one-line doc comment is short.
const SHORT_COMMENT: usize = 3;

#[derive(Default)]
pub struct FileMeasures {
    /// Lines of code outside `cfg(test)`.
    pub product: usize,
    /// Lines of code inside it.
    pub tests: usize,
    /// The length of each function of the product, in lines of code.
    pub functions: Vec<usize>,
    /// Functions of the product with six arguments or more that C doesn't prescribe.
    pub many_arguments: usize,
    pub unsafe_blocks: usize,
    pub public: usize,
    pub documented: usize,
    /// Doc comments of one line.
    pub comments: usize,
    /// Those of at most three words.
    pub short: usize,
    /// Names of structs, enums and traits of the product.
    pub types: Vec<String>,
}

impl FileMeasures {
    pub fn read(path: &Path) -> Result<FileMeasures, String> {
        measure(&shell::read(path)?).map_err(|e| format!("{}: {e}", path.display()))
    }
}

fn measure(text: &str) -> syn::Result<FileMeasures> {
    let file = syn::parse_file(text)?;
    let is_code = text.lines().map(|line| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with("//")
    });
    let mut reader = Reader {
        is_code: is_code.collect(),
        found: FileMeasures::default(),
    };
    let whole = reader.is_code.iter().filter(|is| **is).count();
    reader.visit_file(&file);
    let mut found = reader.found;
    found.product = whole - found.tests;
    (found.comments, found.short) = one_line_comments(text);
    Ok(found)
}

/// Doc comments of one line, and the short ones among them.
fn one_line_comments(text: &str) -> (usize, usize) {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let is_doc = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("///"));
    let alone = (0..lines.len())
        .filter(|&at| is_doc(at) && !is_doc(at + 1) && !at.checked_sub(1).is_some_and(is_doc));
    let alone: Vec<usize> = alone.collect();
    let words = |at: &&usize| {
        lines[**at]
            .trim_start_matches('/')
            .split_whitespace()
            .count()
    };
    let short = alone.iter().filter(|at| words(at) <= SHORT_COMMENT).count();
    (alone.len(), short)
}

struct Reader {
    /// For each line, whether it is code.
    is_code: Vec<bool>,
    found: FileMeasures,
}

impl Reader {
    fn lines(&self, node: &impl Spanned) -> usize {
        let span = node.span();
        let lines = self.is_code.get(span.start().line - 1..span.end().line);
        lines.unwrap_or_default().iter().filter(|is| **is).count()
    }

    /// Counts a public item, and whether it has a doc comment.
    fn item(&mut self, visibility: &syn::Visibility, attributes: &[syn::Attribute]) {
        if matches!(visibility, syn::Visibility::Public(_)) {
            self.public(attributes);
        }
    }

    fn public(&mut self, attributes: &[syn::Attribute]) {
        self.found.public += 1;
        let is_documented = attributes.iter().any(|a| a.path().is_ident("doc"));
        self.found.documented += usize::from(is_documented);
    }

    fn function(&mut self, node: &impl Spanned, signature: &syn::Signature) {
        let lines = self.lines(node);
        self.found.functions.push(lines);
        if signature.abi.is_none() && signature.inputs.len() >= MANY_ARGUMENTS {
            self.found.many_arguments += 1;
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if is_test(&node.attrs) {
            self.found.tests += self.lines(node);
            return;
        }
        visit::visit_item_mod(self, node);
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        if is_test(&node.attrs) {
            self.found.tests += self.lines(node);
            return;
        }
        self.item(&node.vis, &node.attrs);
        self.function(node, &node.sig);
        visit::visit_item_fn(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.item(&node.vis, &node.attrs);
        self.function(node, &node.sig);
        visit::visit_impl_item_fn(self, node);
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        self.public(&node.attrs);
        if node.default.is_some() {
            self.function(node, &node.sig);
        }
        visit::visit_trait_item_fn(self, node);
    }

    fn visit_item_struct(&mut self, node: &'ast syn::ItemStruct) {
        self.item(&node.vis, &node.attrs);
        self.found.types.push(node.ident.to_string());
        visit::visit_item_struct(self, node);
    }

    fn visit_item_enum(&mut self, node: &'ast syn::ItemEnum) {
        self.item(&node.vis, &node.attrs);
        self.found.types.push(node.ident.to_string());
        if matches!(node.vis, syn::Visibility::Public(_)) {
            for variant in &node.variants {
                self.public(&variant.attrs);
            }
        }
        visit::visit_item_enum(self, node);
    }

    fn visit_item_trait(&mut self, node: &'ast syn::ItemTrait) {
        self.item(&node.vis, &node.attrs);
        self.found.types.push(node.ident.to_string());
        visit::visit_item_trait(self, node);
    }

    fn visit_item_const(&mut self, node: &'ast syn::ItemConst) {
        self.item(&node.vis, &node.attrs);
        visit::visit_item_const(self, node);
    }

    fn visit_item_type(&mut self, node: &'ast syn::ItemType) {
        self.item(&node.vis, &node.attrs);
        visit::visit_item_type(self, node);
    }

    fn visit_field(&mut self, node: &'ast syn::Field) {
        self.item(&node.vis, &node.attrs);
        visit::visit_field(self, node);
    }

    fn visit_expr_unsafe(&mut self, node: &'ast syn::ExprUnsafe) {
        self.found.unsafe_blocks += 1;
        visit::visit_expr_unsafe(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
/// Its name.
pub struct Name {
    /// The length of the name in bytes, at most 64.
    pub length: usize,
    pub bare: u8,
}

// A remark.
pub fn many(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) {
    // SAFETY: none needed.
    unsafe { call() }

}

#[cfg(test)]
mod tests {
    #[test]
    fn one() {}
}
";

    #[test]
    fn a_file_is_measured_without_its_tests_and_comments() {
        let found = measure(SOURCE).expect("it is Rust");
        assert_eq!((found.product, found.tests), (7, 5));
        assert_eq!((found.functions, found.many_arguments), (vec![3], 1));
        assert_eq!((found.public, found.documented), (4, 2));
        assert_eq!((found.comments, found.short), (2, 1));
        assert_eq!((found.unsafe_blocks, found.types), (1, vec!["Name".into()]));
    }
}
