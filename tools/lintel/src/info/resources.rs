//! `lintel info --resources`: what running processes hold, process by process and node
//! by node.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

use serde::Serialize;

use crate::error::Result;
use crate::models::Model;
use crate::resources::{Counters, Published, Source};

/// Where no process is found.
pub(super) const NOBODY: &str = "no process of this user has an interface open\n";

/// What processes hold, and what that sums up to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// By job, node and pid.
    pub processes: Vec<Published>,
    /// By job and node.
    pub nodes: Vec<Node>,
}

/// The processes of one job on one node together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The value of `LINTEL_JOB`.
    pub job: String,
    /// The node's network address, as Portals numbers it.
    pub nid: u32,
    /// The number of processes of the job on this node.
    pub processes: u64,
    /// Their sums; what is shared is counted once.
    #[serde(flatten)]
    pub counters: Counters,
}

impl Overview {
    /// Of all jobs, or of `job` alone.
    ///
    /// # Errors
    /// The source can't be read.
    pub fn of(source: &impl Source, job: Option<&str>) -> Result<Self> {
        let mut processes = source.published()?;
        processes.retain(|process| job.is_none_or(|job| process.job == job));
        let mut nodes: BTreeMap<(&str, u32), Node> = BTreeMap::new();
        for process in &processes {
            let node = nodes
                .entry((&process.job, process.nid))
                .or_insert_with(|| Node {
                    job: process.job.clone(),
                    nid: process.nid,
                    processes: 0,
                    counters: Counters::default(),
                });
            node.processes += 1;
            node.counters = node.counters.beside(process.counters);
        }
        let nodes = nodes.into_values().collect();
        Ok(Self { processes, nodes })
    }

    /// For people: a table of processes, one of nodes.
    pub fn text(&self) -> String {
        if self.processes.is_empty() {
            return NOBODY.into();
        }
        let mut processes = vec![header(&["job", "node", "pid", "process", "mode", "conn"])];
        for process in &self.processes {
            let mut cells = vec![
                visible(&process.job),
                address(process.nid),
                process.pid.to_string(),
                process.os_process.to_string(),
                process.mode.name().into(),
                process.conn.map_or("–", Model::name).into(),
            ];
            cells.extend(cells_of(&process.counters));
            processes.push(cells);
        }
        let mut nodes = vec![header(&["job", "node", "processes"])];
        for node in &self.nodes {
            let mut cells = vec![
                visible(&node.job),
                address(node.nid),
                node.processes.to_string(),
            ];
            cells.extend(cells_of(&node.counters));
            nodes.push(cells);
        }
        format!("processes\n{}\nnodes\n{}", table(&processes), table(&nodes))
    }
}

/// Names of the columns, those of every table last.
fn header(own: &[&str]) -> Vec<String> {
    let named = Counters::default().named();
    let counters = named.iter().map(|(name, _)| *name);
    own.iter()
        .copied()
        .chain(counters)
        .map(String::from)
        .collect()
}

fn cells_of(counters: &Counters) -> impl Iterator<Item = String> + use<> {
    counters
        .named()
        .into_iter()
        .map(|(_, value)| value.to_string())
}

/// A name without effect on a terminal: control characters as escapes.
fn visible(name: &str) -> String {
    let each = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.into(),
    };
    name.chars().map(each).collect()
}

fn address(nid: u32) -> String {
    Ipv4Addr::from(nid).to_string()
}

/// Lines of cells, the first two columns to the left.
fn table(lines: &[Vec<String>]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..lines[0].len()).map(|c| width(c).unwrap_or(0)).collect();
    let mut out = String::new();
    for line in lines {
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 | 1 => write!(out, "  {cell:<width$}"),
                _ => write!(out, "  {cell:>width$}"),
            };
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Mode;

    /// Processes that were never there.
    struct Fake(Vec<Published>);

    impl Source for Fake {
        fn published(&self) -> Result<Vec<Published>> {
            Ok(self.0.clone())
        }
    }

    fn process(job: &str, nid: u32, pid: u32, contexts: u64) -> Published {
        Published {
            job: job.into(),
            nid,
            pid,
            os_process: 4000 + pid as i32,
            mode: Mode::Accelerated,
            conn: Some(Model::Xrc),
            counters: Counters {
                contexts,
                shared_contexts: 3,
                pairs: 7,
                sockets: 1,
                bytes: 1000,
                ..Counters::default()
            },
        }
    }

    const NODE: u32 = 0x7f00_0001;

    fn three() -> Fake {
        Fake(vec![
            process("a", NODE, 1024, 2),
            process("a", NODE, 1025, 5),
            process("b", NODE + 1, 1024, 1),
        ])
    }

    #[test]
    fn a_node_sums_what_its_processes_hold_and_counts_what_they_share_once() {
        let overview = Overview::of(&three(), None).expect("reads");
        assert_eq!(overview.nodes.len(), 2);
        let node = &overview.nodes[0];
        assert_eq!((node.processes, node.counters.contexts), (2, 7));
        assert_eq!(
            (node.counters.shared_contexts, node.counters.bytes),
            (3, 2000)
        );
    }

    #[test]
    fn one_job_can_be_asked_for() {
        let overview = Overview::of(&three(), Some("b")).expect("reads");
        assert_eq!((overview.processes.len(), overview.nodes.len()), (1, 1));
        let nobody = Overview::of(&three(), Some("c")).expect("reads");
        assert!(nobody.text().starts_with("no process"));
    }

    #[test]
    fn control_characters_in_names_are_shown_as_escapes() {
        let fake = Fake(vec![process("a\u{1b}]0;x\u{7}\u{9b}2J", NODE, 1, 1)]);
        let text = Overview::of(&fake, None).expect("reads").text();
        let control = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(control), "{text:?}");
        assert!(text.contains("a\\u{1b}]0;x\\u{7}\\u{9b}2J"), "{text}");
    }

    #[test]
    fn tables_name_nodes_by_address() {
        let text = Overview::of(&three(), Some("b")).expect("reads").text();
        let expected = "\
processes
  job  node        pid  process         mode  conn  contexts  shared  pairs  sockets  bytes  lanes  retransmitted  duplicates  forged  malformed  misdirected  connections  pending  held
  b    127.0.0.2  1024     5024  accelerated   xrc         1       3      7        1   1000      0              0           0       0          0            0            0        0     0

nodes
  job  node       processes  contexts  shared  pairs  sockets  bytes  lanes  retransmitted  duplicates  forged  malformed  misdirected  connections  pending  held
  b    127.0.0.2          1         1       3      7        1   1000      0              0           0       0          0            0            0        0     0
";
        assert_eq!(text, expected);
    }
}
