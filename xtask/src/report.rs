//! Counts checks and says how each ended.

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A check's end: nothing to say, or what is wrong.
pub type Outcome = Result<(), String>;

/// What ran, and how it ended.
pub struct Report {
    passed: usize,
    failed: Vec<(String, String)>,
    not_applicable: usize,
}

impl Report {
    pub fn new() -> Self {
        Report {
            passed: 0,
            failed: Vec::new(),
            not_applicable: 0,
        }
    }

    /// Runs one check under its name. Later checks run whether it passes or not.
    pub fn check(&mut self, name: &str, check: impl FnOnce() -> Outcome) -> bool {
        println!("── {name}");
        let began = Instant::now();
        let outcome = check();
        self.note(name, began.elapsed(), outcome)
    }

    /// Notes how a check has ended that took so long.
    pub fn note(&mut self, name: &str, took: Duration, outcome: Outcome) -> bool {
        let took = took.as_secs_f32();
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

    /// Names a check that does not apply here, so that it is not left out silently.
    pub fn not_applicable(&mut self, name: &str) {
        println!("   n/a  {name}");
        self.not_applicable += 1;
    }

    /// Prints what failed and the counts, each on lines of their own.
    pub fn finish(self) -> ExitCode {
        println!();
        for (name, wrong) in &self.failed {
            println!("failed: {name}: {wrong}");
        }
        let (passed, failed) = (self.passed, self.failed.len());
        match self.not_applicable {
            0 => println!("{passed} passed, {failed} failed"),
            n => println!("{passed} passed, {failed} failed, {n} tests not applicable"),
        }
        if self.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
