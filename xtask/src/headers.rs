//! Each header compiles alone, in every language that our users compile.

use std::process::Command;

use crate::report::Outcome;
use crate::shell::{self, Tree};

/// Compiler, language, standard. Programs for Portals 3.3 are older than C99.
const DIALECTS: [(&str, &str, &str); 4] = [
    ("cc", "c", "-std=gnu89"),
    ("cc", "c", "-std=c99"),
    ("cc", "c", "-std=c11"),
    ("c++", "c++", "-std=c++17"),
];

pub fn check(tree: &Tree) -> Outcome {
    let include = tree.path("include");
    let headers = shell::files_below(&include, "h");
    if headers.is_empty() {
        return Err("include/ has no header yet".into());
    }
    for header in &headers {
        for dialect in DIALECTS {
            let name = header.strip_prefix(&include).unwrap_or(header);
            compile_alone(tree, &name.to_string_lossy(), dialect)?;
        }
    }
    println!("   {} headers, {} dialects", headers.len(), DIALECTS.len());
    Ok(())
}

fn compile_alone(tree: &Tree, name: &str, dialect: (&str, &str, &str)) -> Outcome {
    let (compiler, language, standard) = dialect;
    // Through a file that includes it: compiled as the main file, a header
    // earns warnings (pragma once) that no user sees.
    let folder = tree.target.join("headers");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let source = folder.join(format!(
        "{}.{}",
        name.replace('/', "-"),
        if language == "c" { "c" } else { "cc" }
    ));
    let body = format!("#include \"{name}\"\nint main(void) {{ return 0; }}\n");
    std::fs::write(&source, body).map_err(|e| e.to_string())?;
    shell::output(
        Command::new(compiler)
            .args(["-x", language, standard, "-fsyntax-only"])
            .args(["-Wall", "-Wextra", "-pedantic", "-Werror"])
            .arg("-I")
            .arg(tree.path("include"))
            .arg(&source),
    )
    .map(drop)
}
