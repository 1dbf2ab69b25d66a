//! Counts checks and says how each ended.

use std::process::ExitCode;
use std::time::Instant;

/// A check's end: nothing to say, or what is wrong.
pub type Outcome = Result<(), String>;

/// What ran, and how it ended.
pub struct Report {
    passed: usize,
    failed: Vec<(String, String)>,
}

impl Report {
    pub fn new() -> Self {
        Report {
            passed: 0,
            failed: Vec::new(),
        }
    }

    /// Runs one check under its name. Later checks run whether it passes or not.
    pub fn check(&mut self, name: &str, check: impl FnOnce() -> Outcome) -> bool {
        println!("── {name}");
        let began = Instant::now();
        let outcome = check();
        let took = began.elapsed().as_secs_f32();
        match outcome {
            Ok(()) => {
                println!("   ok   {name} ({took:.1} s)");
                self.passed += 1;
                true
            }
            Err(wrong) => {
                println!("   FAIL {name} ({took:.1} s)\n        {wrong}");
                self.failed.push((name.into(), wrong));
                false
            }
        }
    }

    /// Prints what failed and the counts, each on lines of their own.
    pub fn finish(self) -> ExitCode {
        println!();
        for (name, wrong) in &self.failed {
            println!("failed: {name}: {wrong}");
        }
        println!("{} passed, {} failed", self.passed, self.failed.len());
        if self.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
