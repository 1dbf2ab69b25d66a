//! The long commands: `test` and `ci`.

use std::process::ExitCode;

use crate::assault::{self, Assault};
use crate::networks::{self, Setting};
use crate::report::Report;
use crate::shell::{self, Tree};
use crate::soak::{self, Soak};
use crate::{
    book, c_tests, demo, deny, dist, fuzz, headers, hostile, instructions, layers, loom, man,
    netns, prerequisites, sanitize, spec, symbols, test_run, words,
};

/// Seconds per fuzz target in CI.
const FUZZ_SECONDS: u32 = 30;

pub fn test(tree: &Tree, quick: bool) -> ExitCode {
    let mut report = Report::new();
    checks(tree, quick, &mut report);
    report.finish()
}

/// The tests of the library's behaviour, in one setting.
pub fn test_in(tree: &Tree, setting: &Setting) -> ExitCode {
    let mut report = Report::new();
    report.check("prerequisites", || {
        prerequisites::programs(&prerequisites::TEST)
    });
    networks::install_and_run(tree, setting, &mut report);
    report.finish()
}

/// `test`, instructions per call, the same behaviour over every network, attacks, loom models,
/// sanitizers, fuzzing, and a short demo.
pub fn ci(tree: &Tree) -> ExitCode {
    let mut report = Report::new();
    checks(tree, false, &mut report);
    instructions::run(tree, &mut report);
    for setting in networks::matrix() {
        networks::run(tree, &setting, &mut report);
    }
    report.check("soak", || soak::run(tree, &Soak::short()));
    report.check("soak of CCI", || soak::run(tree, &Soak::short_of_cci()));
    report.check("hostile", || hostile::run(tree, &[]));
    netns::run(tree, &mut report);
    assault::run(tree, &Assault::short(tree), &mut report);
    report.check("loom models", || loom::run(tree));
    sanitize::run(tree, sanitize::Length::Short, &mut report);
    fuzz::run(tree, FUZZ_SECONDS, &mut report);
    report.check("demo", || demo::run(tree, demo::Length::Smoke));
    report.finish()
}

/// The quickest checks come first.
fn checks(tree: &Tree, quick: bool, report: &mut Report) {
    report.check("prerequisites", || {
        prerequisites::wanted(&prerequisites::WANTED);
        prerequisites::programs(&prerequisites::TEST)?;
        prerequisites::components(tree)
    });
    report.check("format", || {
        shell::run(tree.cargo().args(["fmt", "--all", "--check"]))
    });
    report.check("layers", || layers::check(tree));
    report.check("words", || words::check(tree));
    report.check("headers", || headers::check(tree));
    report.check("spec", || spec::check(tree));
    report.check("messages in the book", || book::check_messages(tree));
    deny::run(tree, report);
    report.check("clippy", || clippy(tree));
    report.check("unit and integration tests", || {
        let words = ["test", "--workspace", "--no-fail-fast"];
        test_run::run(tree.cargo().args(words), None)
    });
    if quick {
        return;
    }
    let installed = report.check("dist", || dist::run(tree, &tree.dist()));
    if installed {
        report.check("symbols", || symbols::check(tree));
        report.check("man pages", || man::check(tree));
        c_tests::run(tree, None, report);
        book::run_chapters(tree, None, report);
        book::look_at_pages(tree, report);
    }
}

fn clippy(tree: &Tree) -> crate::report::Outcome {
    let words = ["clippy", "--quiet", "--workspace", "--all-targets"];
    shell::run(tree.cargo().args(words).args(["--", "-D", "warnings"]))
}
