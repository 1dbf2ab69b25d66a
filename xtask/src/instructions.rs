//! Instructions per call: `cargo xtask instructions`.
//!
//! callgrind counts calls of the release libraries one at a time, and `spec/instructions.toml`
//! says how many instructions each may take. The programs of `tests/c/instructions` make the
//! calls.
//!
//! What is counted depends on the compiler and on nothing else: callgrind counts the calling
//! thread alone and not the kernel, and bodies of 8 bytes are copied without the
//! C library, which chooses its variants by the processor. If the machine is busy, a call may
//! take another path: the other process sleeps and has to be rung, or the helper has handled
//! the message that the call should find. So each call is repeated, and its most frequent count
//! is taken, of several runs the least if that is too high. Over UDP, where acknowledgements and
//! timers come on top of any call, the least count is taken.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use toml::{Table, Value};

use crate::dist;
use crate::report::{Outcome, Report};
use crate::shell::{self, Tree};

const BUDGET: &str = "spec/instructions.toml";
const HEADER: &str = "/usr/include/valgrind/callgrind.h";
/// The programs: the library's file, the name that it is loaded by, and the source.
const PROGRAMS: [[&str; 3]; 4] = [
    ["libportals.so", PORTALS, "calls.c"],
    ["libportals3.so", "libportals3.so.0", "calls3.c"],
    ["libcci.so", "libcci.so.2", "calls_cci.c"],
    ["libptlcoll.so", COLLECTIVES, "calls_coll.c"],
];
/// Built first: the program of [`COLLECTIVES`] calls it, too.
const PORTALS: &str = "libportals.so.4";
const COLLECTIVES: &str = "libptlcoll.so.1";
/// A call with no work; what it counts is the counting's own.
const EMPTY: &str = "nothing";
/// A call that hasn't found what it should.
const ELSEWHERE: &str = "elsewhere";
/// In the budget, ahead of the names of calls over UDP.
const UDP: &str = "UDP: ";
/// In the names of calls that find a message.
const ARRIVAL: &str = "arrives";
/// Instructions allowed beyond the budget and three in a hundred. The library is optimized as
/// a whole, so a change anywhere moves registers and calls: two versions that differ elsewhere
/// have differed by 22 instructions.
const SLACK: u64 = 25;
/// Runs, as long as a count is too high.
const ATTEMPTS: usize = 5;
/// A run takes some seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// Instructions by name of the call.
type Counts = BTreeMap<String, u64>;

/// Builds the libraries and counts, or reports why that says nothing here.
pub fn run(tree: &Tree, report: &mut Report) {
    if let Some(missing) = missing() {
        return report.not_applicable(&format!("instructions: {missing}"));
    }
    let mut is_comparable = true;
    report.check("instructions", || {
        let budget = Budget::read(&shell::read(&tree.path(BUDGET))?)?;
        is_comparable = compiler(tree)?.starts_with(&format!("{} ", budget.compiler));
        let programs = build(tree)?;
        if is_comparable {
            return compare(&budget, || count(&programs, &budget));
        }
        print(&budget, &count(&programs, &budget)?);
        Ok(())
    });
    if !is_comparable {
        report.not_applicable("instructions: the budget is another compiler's");
    }
}

/// What counting needs and this machine doesn't have.
fn missing() -> Option<&'static str> {
    if !cfg!(target_arch = "x86_64") {
        return Some("the budget is for x86-64");
    }
    if shell::find_program("valgrind").is_none() || !Path::new(HEADER).is_file() {
        return Some("valgrind is missing");
    }
    None
}

fn compiler(tree: &Tree) -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    shell::output(Command::new(rustc).arg("--version").current_dir(&tree.root))
}

/// Builds the libraries and the programs that call them; returns the programs.
fn build(tree: &Tree) -> Result<Vec<PathBuf>, String> {
    dist::build(tree)?;
    let folder = tree.fresh_folder("instructions")?;
    let programs = PROGRAMS
        .iter()
        .map(|program| build_one(tree, &folder, program));
    programs.collect()
}

fn build_one(
    tree: &Tree,
    folder: &Path,
    [built, soname, source]: &[&str; 3],
) -> Result<PathBuf, String> {
    let library = folder.join(soname);
    let built = tree.target.join("release").join(built);
    std::fs::copy(&built, &library).map_err(|e| format!("{}: {e}", built.display()))?;
    let source = tree.path("tests/c/instructions").join(source);
    let program = folder.join(source.file_stem().unwrap_or_default());
    let portals = (*soname == COLLECTIVES).then(|| folder.join(PORTALS));
    shell::output(
        Command::new("cc")
            .args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
            .arg("-I")
            .arg(tree.path("include"))
            .arg(&source)
            .arg(&library)
            .args(portals)
            .arg(format!("-Wl,-rpath,{}", folder.display()))
            .arg("-o")
            .arg(&program),
    )?;
    Ok(program)
}

/// Runs the calls of all programs under callgrind.
fn count(programs: &[PathBuf], budget: &Budget) -> Result<Counts, String> {
    let mut all = Counts::new();
    for program in programs {
        let dumps = dumps(program, None)?;
        all.append(&mut counts(&dumps, |name, sums| {
            most_frequent(budget.plausible(name, sums))
        })?);
    }
    if let Some(portals4) = programs.first() {
        let dumps = dumps(portals4, Some("udp"))?;
        let over_udp = counts(&dumps, |name, sums| {
            least(budget.plausible(&format!("{UDP}{name}"), sums))
        })?;
        let named = over_udp
            .into_iter()
            .map(|(name, n)| (format!("{UDP}{name}"), n));
        // Calls that send nothing, and those of memory that both map, are the same or others.
        all.extend(named.filter(|(name, _)| budget.calls.contains_key(name)));
    }
    Ok(all)
}

/// Runs a program under callgrind, over that network or shared memory; returns what it counted.
fn dumps(program: &Path, network: Option<&str>) -> Result<String, String> {
    let out = program.with_extension("callgrind");
    // Dumps are appended.
    if out.exists() {
        std::fs::remove_file(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    }
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--quiet", "--tool=callgrind", "--collect-atstart=no"])
        .arg("--combine-dumps=yes")
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program);
    // Nothing else, whatever this shell has chosen.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("PTL_") || name.starts_with("LINTEL_") {
            valgrind.env_remove(&*name);
        }
    }
    if let Some(network) = network {
        valgrind.env("PTL_NAL", network);
    }
    shell::run_within(&mut valgrind, LIMIT)?;
    shell::read(&out)
}

/// The count of each call that `chosen` takes, without the counting's own.
fn counts(dumps: &str, chosen: impl Fn(&str, Vec<u64>) -> u64) -> Result<Counts, String> {
    let mut seen: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut name = None;
    for line in dumps.lines() {
        if let Some(trigger) = line.strip_prefix("desc: Trigger: ") {
            name = trigger.strip_prefix("Client Request: ");
        }
        if let (Some(name), Some(sum)) = (name, line.strip_prefix("summary: ")) {
            let sum = sum.parse().map_err(|_| format!("callgrind's {line}"))?;
            seen.entry(name).or_default().push(sum);
        }
    }
    let mut counts: Counts = seen
        .into_iter()
        .filter(|(name, _)| *name != ELSEWHERE)
        .map(|(name, sums)| (name.into(), chosen(name, sums)))
        .collect();
    let own = counts.remove(EMPTY).ok_or("nothing was counted")?;
    counts.values_mut().for_each(|count| *count -= own);
    Ok(counts)
}

fn least(sums: Vec<u64>) -> u64 {
    sums.into_iter().min().unwrap_or_default()
}

/// Of several that are as frequent the least.
fn most_frequent(sums: Vec<u64>) -> u64 {
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    sums.into_iter()
        .for_each(|sum| *times.entry(sum).or_default() += 1);
    let most = times.iter().rev().max_by_key(|(_, times)| **times);
    most.map_or(0, |(sum, _)| *sum)
}

/// What each call may take, with the compiler that it was counted with.
struct Budget {
    compiler: String,
    calls: Counts,
    /// Cache lines that change their owner, which a test of the ring compares.
    lines: Counts,
}

impl Budget {
    fn read(text: &str) -> Result<Budget, String> {
        let table: Table = text.parse().map_err(|e| format!("{BUDGET}: {e}"))?;
        let compiler = table.get("compiler").and_then(Value::as_str);
        let calls = table.get("calls").and_then(Value::as_table);
        let lines = table.get("lines").and_then(Value::as_table);
        let (Some(compiler), Some(calls), Some(lines)) = (compiler, calls, lines) else {
            return Err(format!("{BUDGET} takes a compiler, calls and lines"));
        };
        Ok(Budget {
            compiler: compiler.into(),
            calls: numbers(calls)?,
            lines: numbers(lines)?,
        })
    }

    /// Counts of a call without those of rounds in which the helper had handled the message, or
    /// had received it: far less than it takes.
    fn plausible(&self, name: &str, sums: Vec<u64>) -> Vec<u64> {
        let least = match self.calls.get(name) {
            Some(budget) if name.contains(ARRIVAL) => budget * 2 / 3,
            _ => 0,
        };
        let enough: Vec<u64> = sums.iter().copied().filter(|sum| *sum > least).collect();
        match enough.is_empty() {
            true => sums,
            false => enough,
        }
    }

    /// What is wrong with these counts. Three in a hundred are allowed, and [`SLACK`].
    fn exceeded(&self, counts: &Counts) -> Vec<String> {
        let mut wrong = Vec::new();
        for (name, budget) in &self.calls {
            match counts.get(name) {
                None => wrong.push(format!("'{name}' isn't counted")),
                Some(count) if *count > budget + budget * 3 / 100 + SLACK => {
                    wrong.push(format!("'{name}' takes {count} instructions, not {budget}"));
                }
                Some(_) => {}
            }
        }
        let unknown = counts.keys().filter(|name| !self.calls.contains_key(*name));
        wrong.extend(unknown.map(|name| format!("'{name}' has no budget")));
        wrong
    }
}

/// The numbers of a table of the budget.
fn numbers(table: &Table) -> Result<Counts, String> {
    let number = |value: &Value| value.as_integer()?.try_into().ok();
    let counts = table.iter().map(|(name, value)| {
        let count = number(value).ok_or(format!("{BUDGET}: {name} takes a number"))?;
        Ok((name.clone(), count))
    });
    counts.collect()
}

/// Counts until nothing is exceeded, and takes the least of each.
fn compare(budget: &Budget, mut count: impl FnMut() -> Result<Counts, String>) -> Outcome {
    let mut least = count()?;
    for _ in 1..ATTEMPTS {
        if budget.exceeded(&least).is_empty() {
            break;
        }
        for (name, again) in count()? {
            let count = least.entry(name).or_insert(again);
            *count = again.min(*count);
        }
    }
    print(budget, &least);
    let exceeded = budget.exceeded(&least);
    match exceeded.is_empty() {
        true => Ok(()),
        false => Err(format!("{BUDGET}: {}", exceeded.join("; "))),
    }
}

fn print(budget: &Budget, counts: &Counts) {
    println!("   {:50} {:>7} {:>7}", "instructions", "counted", "budget");
    for (name, count) in counts {
        match budget.calls.get(name) {
            Some(budget) => println!("   {name:50} {count:7} {budget:7}"),
            None => println!("   {name:50} {count:7}       –"),
        }
    }
    println!("   cache lines that change their owner, for 8 bytes");
    for (name, count) in &budget.lines {
        println!("   {name:50} {count:7}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGETED: &str =
        "compiler = 'rustc 1.0'\n[calls]\nput = 100\nget = 10\n'put arrives' = 100\n[lines]";

    fn counted(put: u64, get: u64) -> Counts {
        let counts = [("put", put), ("get", get), ("put arrives", 100)];
        counts.map(|(name, count)| (name.into(), count)).into()
    }

    #[test]
    fn dumps_become_the_most_frequent_count_of_each_call() {
        let dump = |name: &str, sum: u64| {
            format!("desc: Trigger: Client Request: {name}\n\nevents: Ir\nsummary: {sum}\n0x1 2\n")
        };
        let mut dumps: String = [(EMPTY, 7), ("put", 30), ("put", 19), ("put", 19)]
            .map(|(name, sum)| dump(name, sum))
            .concat();
        dumps += &dump(ELSEWHERE, 1);
        dumps += "desc: Trigger: Program termination\nsummary: 5000\n";
        let counts = |dumps| counts(dumps, |_, sums| most_frequent(sums));
        let expected = Counts::from([("put".into(), 12)]);
        assert_eq!(counts(&dumps), Ok(expected));
        assert!(counts("").is_err());
    }

    #[test]
    fn rounds_whose_message_was_handled_before_are_left_out() {
        let budget = Budget::read(BUDGETED).expect("it is one");
        let sums = || vec![9, 9, 100];
        assert_eq!(budget.plausible("put arrives", sums()), [100]);
        assert_eq!(budget.plausible("put arrives", vec![9]), [9]);
        assert_eq!(budget.plausible("put", sums()), sums());
    }

    #[test]
    fn a_count_within_three_percent_and_the_slack_passes() {
        let budget = Budget::read(BUDGETED).expect("it is one");
        assert!(budget.exceeded(&counted(128, 35)).is_empty());
        assert_eq!(budget.exceeded(&counted(129, 36)).len(), 2);
    }

    #[test]
    fn calls_without_a_budget_and_budgets_without_a_call_are_reported() {
        let budget = Budget::read(BUDGETED).expect("it is one");
        let mut other = counted(1, 1);
        other.remove("get");
        other.insert("swap".into(), 1);
        let wrong = budget.exceeded(&other);
        assert_eq!(wrong, ["'get' isn't counted", "'swap' has no budget"]);
    }

    #[test]
    fn the_least_of_several_runs_counts() {
        let budget = Budget::read(BUDGETED).expect("it is one");
        let mut runs = [counted(900, 10), counted(100, 900)].into_iter();
        assert_eq!(compare(&budget, || Ok(runs.next().expect("two"))), Ok(()));
        assert!(compare(&budget, || Ok(counted(200, 1))).is_err());
    }
}
