//! A schedule laid out for running: all ranks' operations in one row, each with what
//! waits for it.

use std::fmt;

use crate::goal::{Act, Goal, Operation, Order, Program, Rank};

/// A schedule that can be run.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub(crate) ranks: u32,
    pub(crate) steps: Vec<Step>,
    /// What waits for each step, one step's after the other's.
    followers: Vec<Follower>,
    /// Processors, and interfaces, of each host.
    pub(crate) cpus: usize,
    pub(crate) nics: usize,
}

/// An operation in the row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) operation: Operation,
    pub(crate) rank: Rank,
    /// For how many operations it waits.
    pub(crate) waits: u32,
    /// Where its followers begin; they end where the next one's begin.
    followers: u32,
}

/// A step that waits for another one's end, or begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Follower {
    pub(crate) step: u32,
    pub(crate) order: Order,
}

/// Operations of a rank that wait for each other, so that none of them ever begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cycle {
    /// The rank whose operations wait for each other.
    pub rank: Rank,
    /// One of the operations, by its place among the rank's, from 0.
    pub operation: u32,
}

impl Goal {
    /// Lays the schedule out.
    ///
    /// # Errors
    ///
    /// A rank whose operations wait for each other in a circle.
    ///
    /// # Panics
    ///
    /// Above 2^31 operations or dependencies.
    pub fn compile(&self) -> Result<Compiled, Cycle> {
        let units = |unit: fn(&Operation) -> u8| {
            let all = self.programs.iter().flat_map(|p| &p.operations);
            1 + all.map(|o| usize::from(unit(o))).max().unwrap_or(0)
        };
        let mut compiled = Compiled {
            ranks: self.ranks(),
            steps: Vec::with_capacity(self.operations()),
            followers: Vec::new(),
            cpus: units(|operation| operation.cpu),
            nics: units(|operation| operation.nic),
        };
        for (rank, program) in (0..).zip(&self.programs) {
            if let Some(operation) = find_cycle(program) {
                return Err(Cycle { rank, operation });
            }
            compiled.append(rank, program);
        }
        Ok(compiled)
    }
}

impl Compiled {
    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// How many operations all ranks have.
    pub fn operations(&self) -> usize {
        self.steps.len()
    }

    pub(crate) fn followers(&self, step: u32) -> &[Follower] {
        let at = step as usize;
        let end = self.steps.get(at + 1).map(|next| next.followers as usize);
        let end = end.unwrap_or(self.followers.len());
        &self.followers[self.steps[at].followers as usize..end]
    }

    fn append(&mut self, rank: Rank, program: &Program) {
        let first = index(self.steps.len());
        let mut following: Vec<_> = program
            .dependencies
            .iter()
            .map(|d| {
                let later = &program.operations[d.later.0 as usize];
                (d.earlier, place(later.act), d.later, d.order)
            })
            .collect();
        following.sort_unstable();
        let mut following = following.into_iter().peekable();
        for (number, &operation) in (0..).zip(&program.operations) {
            self.steps.push(Step {
                operation,
                rank,
                waits: 0,
                followers: index(self.followers.len()),
            });
            while let Some((_, _, later, order)) = following.next_if(|f| f.0.0 == number) {
                let step = first + later.0;
                self.followers.push(Follower { step, order });
            }
        }
        for dependency in &program.dependencies {
            self.steps[(first + dependency.later.0) as usize].waits += 1;
        }
    }
}

/// Among operations that become free together, sends go first, then receives, as in
/// LogGOPSim.
pub(crate) fn place(act: Act) -> u8 {
    match act {
        Act::Send(_) => 0,
        Act::Recv(_) => 1,
        Act::Calc => 2,
    }
}

/// An operation that waits for itself by way of others.
fn find_cycle(program: &Program) -> Option<u32> {
    let count = program.operations.len();
    let mut waits = vec![0u32; count];
    let mut edges = program.dependencies.clone();
    edges.sort_unstable_by_key(|d| d.earlier);
    for edge in &edges {
        waits[edge.later.0 as usize] += 1;
    }
    let mut free: Vec<usize> = (0..count).filter(|&at| waits[at] == 0).collect();
    while let Some(at) = free.pop() {
        let from = edges.partition_point(|d| (d.earlier.0 as usize) < at);
        for edge in edges[from..]
            .iter()
            .take_while(|d| d.earlier.0 as usize == at)
        {
            let later = edge.later.0 as usize;
            waits[later] -= 1;
            if waits[later] == 0 {
                free.push(later);
            }
        }
    }
    waits.iter().position(|&waits| waits > 0).map(index)
}

fn index(at: usize) -> u32 {
    let index = u32::try_from(at).ok().filter(|&at| at < 1 << 31);
    index.expect("a schedule has less than 2^31 operations and dependencies")
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cycle { rank, operation } = self;
        write!(
            f,
            "operation {operation} of rank {rank} (they count from 0) waits for itself by way of others"
        )
    }
}

impl std::error::Error for Cycle {}
