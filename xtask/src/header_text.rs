//! Reads function names out of the hand-written headers.
//!
//! Not a C parser: our headers keep to plain prototypes, and what this module
//! misreads the symbol check shows at once.

use std::collections::BTreeSet;

use crate::shell::{self, Tree};

/// Every function that one header declares (`static inline` ones left out,
/// as no library exports them).
pub fn functions_of(tree: &Tree, header: &str) -> Result<BTreeSet<String>, String> {
    let path = tree.path("include").join(header);
    Ok(functions(&shell::read(&path)?))
}

/// Every function that any of these headers declares.
pub fn functions_of_all(tree: &Tree, headers: &[&str]) -> Result<BTreeSet<String>, String> {
    let mut all = BTreeSet::new();
    for header in headers {
        all.append(&mut functions_of(tree, header)?);
    }
    Ok(all)
}

/// Every array that any of these headers declares.
pub fn arrays_of_all(tree: &Tree, headers: &[&str]) -> Result<BTreeSet<String>, String> {
    let mut all = BTreeSet::new();
    for header in headers {
        let text = shell::read(&tree.path("include").join(header))?;
        all.append(&mut arrays(&text));
    }
    Ok(all)
}

fn arrays(text: &str) -> BTreeSet<String> {
    let code = without_preprocessor(&without_comments(text));
    let statements = code.split([';', '{', '}']).map(str::trim);
    let declared = statements.filter_map(|statement| {
        let before = statement.strip_prefix("extern ")?.strip_suffix("[]")?;
        before.rsplit([' ', '*']).next().map(str::to_string)
    });
    declared.collect()
}

fn functions(text: &str) -> BTreeSet<String> {
    let code = without_preprocessor(&without_comments(text));
    let mut found = BTreeSet::new();
    let mut rest = code.as_str();
    while let Some(end) = rest.find([';', '{', '}']) {
        let (statement, tail) = rest.split_at(end);
        if tail.starts_with(';') && !statement.contains("static") && !statement.contains("typedef")
        {
            found.extend(declared(statement));
        }
        rest = &tail[1..];
    }
    found
}

/// The name before the first parenthesis, if it is one of ours.
fn declared(statement: &str) -> Option<String> {
    let before = statement[..statement.find('(')?].trim_end();
    let start = before
        .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .map_or(0, |at| at + 1);
    let name = &before[start..];
    let ours = ["Ptl", "ptlcoll_", "ptljob_", "PMI_", "cci_", "cnos_"]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    ours.then(|| name.to_string())
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let block = rest.find("/*");
        let line = rest.find("//");
        let (at, close) = match (block, line) {
            (Some(b), Some(l)) if l < b => (l, "\n"),
            (Some(b), _) => (b, "*/"),
            (None, Some(l)) => (l, "\n"),
            (None, None) => {
                out.push_str(rest);
                return out;
            }
        };
        out.push_str(&rest[..at]);
        out.push(if close == "\n" { '\n' } else { ' ' });
        let inside = &rest[at + 2..];
        rest = match inside.find(close) {
            Some(end) => &inside[end + close.len()..],
            None => return out,
        };
    }
}

fn without_preprocessor(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut continued = false;
    for line in code.lines() {
        let directive = continued || line.trim_start().starts_with('#');
        continued = directive && line.trim_end().ends_with('\\');
        if !directive {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prototypes_are_found_and_all_else_is_left() {
        let text = "
            #define PtlOld(x) \\
                PtlNew(x);
            /* int PtlInComment(void); */
            // int PtlInLine(void);
            extern \"C\" {
            typedef int (*PtlCallback)(int);
            static inline int PtlInline(void) { return 1; }
            int PtlInit(void);
            int PtlPut(ptl_handle_md_t md,
                       ptl_size_t length);
            const char *PtlToStr(int rc, ptl_str_type_t type);
            int ptlcoll_wait(ptlcoll_request_t *request);
            }
        ";
        let names: Vec<String> = functions(text).into_iter().collect();
        assert_eq!(names, ["PtlInit", "PtlPut", "PtlToStr", "ptlcoll_wait"]);
    }

    #[test]
    fn arrays_are_found_beside_functions() {
        let text = "extern \"C\" {\nextern const char *names[];\nint PtlInit(void);\n}";
        assert_eq!(arrays(text).into_iter().collect::<Vec<_>>(), ["names"]);
    }
}
