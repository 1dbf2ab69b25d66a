//! What ranks do, and what waits for what.

use std::fmt;

/// A process of the schedule, numbered from 0.
pub type Rank = u32;

/// An operation of a rank, by its place among the rank's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Label(pub u32);

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Sends `size` bytes to a rank.
    Send(Rank),
    /// Receives `size` bytes from a rank, or from any.
    Recv(Option<Rank>),
    /// Occupies a processor for `size` nanoseconds.
    Calc,
}

/// An operation of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Send, receive or compute.
    pub act: Act,
    /// Bytes of a message, nanoseconds of a computation.
    pub size: u64,
    /// Messages and receives of one tag meet; a receive without one takes any.
    pub tag: Option<u32>,
    /// The processor that it takes.
    pub cpu: u8,
    /// The network interface that it takes.
    pub nic: u8,
}

/// When an operation that waits for another may begin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Order {
    /// When the other has ended (`requires`).
    AfterEnd,
    /// When the other has begun (`irequires`).
    AfterBegin,
}

/// That one operation waits for another one of the same rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Dependency {
    pub(crate) later: Label,
    pub(crate) earlier: Label,
    pub(crate) order: Order,
}

/// The operations of one rank, with their dependencies.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Program {
    pub(crate) operations: Vec<Operation>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A schedule of all ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Goal {
    pub(crate) programs: Vec<Program>,
}

impl Operation {
    /// Sends so many bytes with tag 0, by processor 0 and interface 0.
    pub const fn send(to: Rank, bytes: u64) -> Self {
        Self::new(Act::Send(to), bytes)
    }

    /// Receives so many bytes with tag 0.
    pub const fn recv(from: Rank, bytes: u64) -> Self {
        Self::new(Act::Recv(Some(from)), bytes)
    }

    /// Receives so many bytes from any rank with tag 0.
    pub const fn recv_any(bytes: u64) -> Self {
        Self::new(Act::Recv(None), bytes)
    }

    /// Computes for so many nanoseconds.
    pub const fn calc(ns: u64) -> Self {
        Self::new(Act::Calc, ns)
    }

    /// The same with a tag.
    #[must_use]
    pub const fn tagged(self, tag: u32) -> Self {
        Operation {
            tag: Some(tag),
            ..self
        }
    }

    pub(crate) const fn new(act: Act, size: u64) -> Self {
        Operation {
            act,
            size,
            tag: Some(0),
            cpu: 0,
            nic: 0,
        }
    }
}

impl Goal {
    /// Ranks that do nothing yet.
    pub fn new(ranks: u32) -> Self {
        Goal {
            programs: vec![Program::default(); ranks as usize],
        }
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        u32::try_from(self.programs.len()).expect("it was made of a u32")
    }

    /// How many operations all ranks have.
    pub fn operations(&self) -> usize {
        self.programs.iter().map(|p| p.operations.len()).sum()
    }

    /// Gives a rank one more operation, which waits for nothing.
    ///
    /// # Panics
    ///
    /// If the rank, or the one that it sends to or receives from, is none of them.
    pub fn add(&mut self, rank: Rank, operation: Operation) -> Label {
        if let Act::Send(peer) | Act::Recv(Some(peer)) = operation.act {
            assert!(
                peer < self.ranks(),
                "rank {peer} is none of {}",
                self.ranks()
            );
        }
        let operations = &mut self.programs[rank as usize].operations;
        let label = u32::try_from(operations.len()).expect("a rank has less than 2^32 operations");
        operations.push(operation);
        Label(label)
    }

    /// Gives a rank one more operation, which waits for the end of `earlier`, if there
    /// is one.
    ///
    /// # Panics
    ///
    /// As [`Goal::add`] and [`Goal::require`].
    pub fn then(&mut self, rank: Rank, earlier: Option<Label>, operation: Operation) -> Label {
        let later = self.add(rank, operation);
        if let Some(earlier) = earlier {
            self.require(rank, later, earlier, Order::AfterEnd);
        }
        later
    }

    /// Lets an operation of a rank wait for another one of the same.
    ///
    /// # Panics
    ///
    /// If one of them is none of the rank's.
    pub fn require(&mut self, rank: Rank, later: Label, earlier: Label, order: Order) {
        let program = &mut self.programs[rank as usize];
        let count = program.operations.len();
        let last = later.max(earlier);
        assert!(
            (last.0 as usize) < count,
            "rank {rank} has {count} operations"
        );
        program.dependencies.push(Dependency {
            later,
            earlier,
            order,
        });
    }
}

/// The textual form, which [`Goal::parse`] reads.
impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "num_ranks {}", self.ranks())?;
        for (rank, program) in self.programs.iter().enumerate() {
            writeln!(f, "\nrank {rank} {{")?;
            for (label, operation) in program.operations.iter().enumerate() {
                writeln!(f, "l{label}: {operation}")?;
            }
            for dependency in &program.dependencies {
                writeln!(f, "{dependency}")?;
            }
            writeln!(f, "}}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation { size, cpu, nic, .. } = self;
        match self.act {
            Act::Calc => return write!(f, "calc {size} cpu {cpu}"),
            Act::Send(to) => write!(f, "send {size}b to {to}")?,
            Act::Recv(Some(from)) => write!(f, "recv {size}b from {from}")?,
            Act::Recv(None) => write!(f, "recv {size}b from -1")?,
        }
        match self.tag {
            Some(tag) => write!(f, " tag {tag} cpu {cpu} nic {nic}"),
            None => write!(f, " tag -1 cpu {cpu} nic {nic}"),
        }
    }
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.order {
            Order::AfterEnd => "requires",
            Order::AfterBegin => "irequires",
        };
        write!(f, "l{} {word} l{}", self.later.0, self.earlier.0)
    }
}
