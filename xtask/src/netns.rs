//! Two network namespaces with a cable between them that drops packets.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::networks::Setting;
use crate::report::{Outcome, Report};
use crate::shell::{self, Tree};
use crate::{dist, prerequisites, soak};

/// Of a hundred datagrams, so many are lost each way.
const DROPS: [u32; 2] = [1, 5];
/// How long operations are started between the namespaces, for each of them.
const SECONDS: u32 = 10;
/// Of both ends, which have no user's folder of their own.
const SECRET: &str = "1717171717171717171717171717171717171717171717171717171717171717";
const LIMIT: Duration = Duration::from_secs(180);
/// The first node; the second one is next to it.
const ADDRESS: &str = "10.117.0.1";

/// Puts, gets and atomics between the namespaces, at each rate of drops; where the
/// machine allows no namespaces, says so.
pub fn run(tree: &Tree, report: &mut Report) {
    if let Err(why) = able() {
        return report.not_applicable(&format!("netns: {why}"));
    }
    for drops in DROPS {
        report.check(&format!("netns: udp, {drops} % dropped"), || {
            let cable = Cable::lay(drops)?;
            soak_over(tree, &cable)?;
            cable.dropped()
        });
    }
    report.check("netns: lintel perf --peer", || {
        let cable = Cable::lay(0)?;
        measured_over(tree, &cable)
    });
}

/// Whether namespaces can be made here.
fn able() -> Outcome {
    if !prerequisites::is_root() {
        return Err("needs root, for network namespaces".into());
    }
    prerequisites::programs(&prerequisites::NAMESPACES)?;
    let cable = Cable::lay(0).map_err(|why| format!("no network namespaces here: {why}"))?;
    drop(cable);
    Ok(())
}

fn soak_over(tree: &Tree, cable: &Cable) -> Outcome {
    let mut program = soak::program(tree, "fault-soak")?;
    let seconds = SECONDS.to_string();
    program.args(["--seconds", &seconds, "--kills", "0", "--ranks", "4"]);
    program.args(["--first", ADDRESS]);
    for (node, name) in cable.ends.iter().enumerate() {
        program.args(["--within", &format!("{node}=ip netns exec {name}")]);
    }
    Setting::over("udp", None).apply_to(&mut program);
    shell::run_within(&mut program, LIMIT)
}

/// `lintel perf` between the namespaces, as between two machines.
fn measured_over(tree: &Tree, cable: &Cable) -> Outcome {
    dist::run(tree, &tree.dist())?;
    let perf = |end: &str, words: &str| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", end]);
        command.arg(tree.dist().join("bin/lintel")).arg("perf");
        command.args(words.split(' ')).env("LINTEL_SECRET", SECRET);
        command
    };
    let [a, b] = &cable.ends;
    let listens = perf(a, "--listen").stderr(Stdio::piped()).spawn();
    let mut listens = listens.map_err(|e| format!("lintel: {e}"))?;
    let mut line = String::new();
    // Kept, for it may say more.
    let mut said = listens.stderr.take().map(BufReader::new);
    said.as_mut().map(|said| said.read_line(&mut line));
    let words = format!("put bandwidth --sizes 8,16K --time 20 --rounds 2 --peer {ADDRESS}");
    let measured = shell::run_within(&mut perf(b, &words), LIMIT);
    if measured.is_err() {
        // It may still wait.
        let _ = listens.kill();
    }
    let ended = listens.wait().map_err(|e| format!("lintel: {e}"))?;
    measured?;
    match ended.success() {
        true => Ok(()),
        false => Err(format!("the one that listened: {ended}")),
    }
}

/// Two namespaces, joined; they go with it.
struct Cable {
    ends: [String; 2],
    drops: u32,
}

impl Cable {
    fn lay(drops: u32) -> Result<Cable, String> {
        let name = |end| format!("lintel-{}-{end}", std::process::id());
        let cable = Cable {
            ends: [name("a"), name("b")],
            drops,
        };
        let [a, b] = &cable.ends;
        for end in [a, b] {
            ip(&["netns", "add", end])?;
        }
        ip(&[
            "link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable", "netns", b,
        ])?;
        for (end, address) in [a, b].into_iter().zip(["10.117.0.1/24", "10.117.0.2/24"]) {
            ip(&["-n", end, "address", "add", address, "dev", "cable"])?;
            ip(&["-n", end, "link", "set", "lo", "up"])?;
            ip(&["-n", end, "link", "set", "cable", "up"])?;
            if drops > 0 {
                nft(end, &["add", "table", "inet", "lossy"])?;
                nft(end, &[&format!("add chain inet lossy in {HOOK}")])?;
                nft(
                    end,
                    &[&format!(
                        "add rule inet lossy in {} {drops} counter drop",
                        RULE
                    )],
                )?;
            }
        }
        Ok(cable)
    }

    /// Something was dropped; else nothing was proven.
    fn dropped(&self) -> Outcome {
        for end in &self.ends {
            let table = nft(end, &["list", "table", "inet", "lossy"])?;
            let count = table.split("counter packets ").nth(1);
            let count = count.and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
            match count {
                Some(count @ 1..) => println!("   {end} dropped {count} datagrams"),
                _ => {
                    return Err(format!(
                        "{end} dropped nothing of {} %:\n{table}",
                        self.drops
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for end in &self.ends {
            // What was never made needn't go.
            let _ = ip(&["netns", "delete", end]);
        }
    }
}

const HOOK: &str = "{ type filter hook input priority 0 ; }";
const RULE: &str = "meta l4proto udp numgen random mod 100 <";

fn ip(words: &[&str]) -> Result<String, String> {
    shell::output(Command::new("ip").args(words))
}

fn nft(namespace: &str, words: &[&str]) -> Result<String, String> {
    let inside = ["netns", "exec", namespace, "nft"];
    shell::output(Command::new("ip").args(inside).args(words))
}
