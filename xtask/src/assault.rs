//! Attacks on the installed library, in namespaces.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::report::{Outcome, Report};
use crate::shell::{self, Arguments, Tree};
use crate::{dist, soak};

/// Kills of all placements together.
const KILLS: u64 = 300;
/// Placements in which processes are killed.
const PLACEMENTS: u64 = 3;
/// Longer than `fault-assault` gives any attack.
const LIMIT: Duration = Duration::from_secs(900);
/// What `fault-assault` ends with where an attack can't run.
const NOT_APPLICABLE: i32 = 77;

/// Which attacks, how long, and on what.
pub struct Assault {
    names: Vec<String>,
    kills: u64,
    minutes: Option<u64>,
    seed: Option<String>,
    /// An installed library; that of this tree where there is none.
    prefix: Option<PathBuf>,
    /// Only what CI runs.
    short: bool,
}

impl Assault {
    /// The form for CI, on what was installed before.
    pub fn short(tree: &Tree) -> Assault {
        Assault {
            names: Vec::new(),
            kills: KILLS,
            minutes: None,
            seed: None,
            prefix: Some(tree.dist()),
            short: true,
        }
    }

    /// Reads `--kills`, `--minutes`, `--seed`, `--prefix` and names.
    pub fn read(words: &[&str]) -> Result<Assault, String> {
        let (mut names, mut options) = (Vec::new(), Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !word.starts_with("--") {
                names.push((*word).to_owned());
                continue;
            }
            options.push(*word);
            if !word.contains('=') {
                options.extend(words.next());
            }
        }
        let known = ["--kills", "--minutes", "--seed", "--prefix"];
        let options = Arguments::new(&options)?.only(&known)?;
        let number = |name: &str| match options.get(name).map(str::parse::<u64>) {
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => Err(format!("{name} wants a number")),
            None => Ok(None),
        };
        Ok(Assault {
            names,
            kills: number("--kills")?.unwrap_or(KILLS),
            minutes: number("--minutes")?,
            seed: options.get("--seed").map(String::from),
            prefix: options.get("--prefix").map(PathBuf::from),
            short: false,
        })
    }
}

/// One line of what `fault-assault list` prints.
struct Attack {
    name: String,
    in_ci: bool,
    about: String,
}

/// Runs the attacks; where the machine doesn't allow one, says so.
pub fn run(tree: &Tree, assault: &Assault, report: &mut Report) {
    let mut ready = None;
    let built = report.check("assault: programs", || {
        ready = Some(build(tree, assault)?);
        Ok(())
    });
    let Some((program, attacks)) = ready.filter(|_| built) else {
        return;
    };
    for attack in attacks {
        let name = format!("assault: {}: {}", attack.name, attack.about);
        match able(&program, &attack) {
            Ok(()) => {
                report.check(&name, || attempt(tree, assault, &program, &attack));
            }
            Err(why) => report.not_applicable(&format!("{name}: {why}")),
        }
    }
}

/// The driver, and the attacks that were asked for.
fn build(tree: &Tree, assault: &Assault) -> Result<(PathBuf, Vec<Attack>), String> {
    let prefix = match &assault.prefix {
        Some(prefix) => prefix.clone(),
        None => {
            dist::run(tree, &tree.dist())?;
            tree.dist()
        }
    };
    compile(tree, &prefix)?;
    let program = PathBuf::from(soak::program(tree, "fault-assault")?.get_program());
    let listing = shell::output(Command::new(&program).arg("list"))?;
    let mut attacks: Vec<Attack> = listing.lines().filter_map(Attack::read).collect();
    let unknown = |name: &&String| !attacks.iter().any(|attack| attack.is_meant_by(name));
    if let Some(name) = assault.names.iter().find(unknown) {
        let known: Vec<&str> = attacks.iter().map(|attack| attack.name.as_str()).collect();
        return Err(format!("no attack {name}; there are {}", known.join(", ")));
    }
    attacks.retain(|attack| match assault.names.as_slice() {
        [] => attack.in_ci || !assault.short,
        names => names.iter().any(|name| attack.is_meant_by(name)),
    });
    Ok((program, attacks))
}

impl Attack {
    fn read(line: &str) -> Option<Attack> {
        let mut words = line.split('\t');
        let (name, _needs) = (words.next()?.to_owned(), words.next()?);
        let in_ci = words.next()? == "ci";
        let about = words.next()?.to_owned();
        Some(Attack { name, in_ci, about })
    }

    /// By its own name or by the beginning of it: `closed` means all of `closed-…`.
    fn is_meant_by(&self, name: &str) -> bool {
        let rest = self.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

/// The programs of `tests/c/assault`, which find the library beside their folder.
fn compile(tree: &Tree, prefix: &Path) -> Outcome {
    let folder = programs(tree);
    std::fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    for source in shell::files(&tree.path("tests/c/assault"), "c") {
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]);
        cc.arg("-pthread").arg("-I").arg(prefix.join("include"));
        cc.arg("-o")
            .arg(folder.join(source.file_stem().unwrap_or_default()));
        cc.arg(&source).arg("-L").arg(prefix.join("lib"));
        cc.args(["-lportals", "-Wl,-rpath,$ORIGIN/../lib"]);
        shell::output(&mut cc)?;
    }
    Ok(())
}

fn programs(tree: &Tree) -> PathBuf {
    tree.target.join("assault")
}

fn able(program: &Path, attack: &Attack) -> Outcome {
    let mut asked = Command::new(program);
    asked.args(["able", &attack.name]).stdin(Stdio::null());
    let done = asked.output().map_err(|why| why.to_string())?;
    match done.status.code() {
        Some(NOT_APPLICABLE) => Err(String::from_utf8_lossy(&done.stderr).trim().into()),
        _ => Ok(()),
    }
}

fn attempt(tree: &Tree, assault: &Assault, program: &Path, attack: &Attack) -> Outcome {
    let prefix = assault.prefix.clone().unwrap_or_else(|| tree.dist());
    let prefix = prefix.canonicalize().map_err(|why| why.to_string())?;
    let mut command = Command::new(program);
    command.args(["run", &attack.name, "--prefix"]).arg(prefix);
    command.arg("--programs").arg(programs(tree));
    let kills = assault.kills.div_ceil(PLACEMENTS).to_string();
    command.args(["--kills", &kills]);
    if let Some(minutes) = assault.minutes {
        command.args(["--minutes", &minutes.to_string()]);
    }
    if let Some(seed) = &assault.seed {
        command.args(["--seed", seed]);
    }
    if assault.short {
        command.args(["--short", "yes"]);
    }
    let more = 2 * assault.kills + 60 * assault.minutes.unwrap_or(0);
    shell::run_quoting(&mut command, LIMIT + Duration::from_secs(more)).map_err(|wrong| {
        format!(
            "{wrong}\n        again: cargo xtask assault {}",
            attack.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_options_may_be_mixed() {
        let words = ["closed-put", "--kills", "10000", "full", "--seed=4"];
        let assault = Assault::read(&words).expect("it is understood");
        assert_eq!(assault.names, ["closed-put", "full"]);
        assert_eq!(
            (assault.kills, assault.seed.as_deref()),
            (10_000, Some("4"))
        );
        assert!(Assault::read(&["--kill", "3"]).is_err());
    }

    #[test]
    fn a_name_means_all_that_begin_with_it() {
        let attack = Attack::read("closed-put-shm\tnamespaces\tci\tabout").expect("a line");
        let meant = ["closed-put-shm", "closed-put", "closed"].map(|name| attack.is_meant_by(name));
        assert_eq!((meant, attack.is_meant_by("close")), ([true; 3], false));
    }
}
