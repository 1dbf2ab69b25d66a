//! What is to be done, by which algorithm.

use core::fmt;

use crate::algorithms::{self, Draft};
use crate::schedule::Schedule;
use crate::tree::Tree;

/// How many ranks, and how many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// How many ranks take part, at least one.
    pub ranks: u32,
    /// The bytes that a rank gives or, if only the root gives, that a rank gets.
    pub bytes: u64,
}

/// How it is done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Algorithm {
    /// In each round every rank notifies the one that is twice as far away as in the
    /// round before (Hensgen, Finkel, Manber, 1988). For barriers, which need no
    /// bytes.
    Dissemination,
    /// In each round every rank exchanges all it knows with the one whose number
    /// differs in the next bit. Ranks beyond the largest power of two hand theirs
    /// to another one first, and get the result last. For barriers and all-reduces.
    RecursiveDoubling,
    /// In each round half of the ranks' bytes are exchanged for sums of the other
    /// half, until each rank has the sum of a part; then the parts are joined. A rank
    /// sends less than twice its bytes, in twice as many rounds as by recursive
    /// doubling (Thakur, Rabenseifner, Gropp, 2005). For reduces and all-reduces of
    /// many bytes.
    Halving,
    /// Along a tree: up, down, or both. For everything.
    Tree(Tree),
    /// Down a tree in pieces of so many bytes, each on its way as soon as it is
    /// there. For broadcasts. There are 64 pieces at most; they are larger if
    /// they would be more.
    Pipelined(Tree, u64),
}

/// In which order a rank combines what it gets from several others.
///
/// It matters if the operation isn't associative, as with floating point. A rank
/// that gets from one other only, as in recursive doubling, gives the same result
/// either way; the order then says where bytes are combined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Order {
    /// As it arrives, all into one place: least memory, soonest done, and another
    /// result each time.
    #[default]
    Arrival,
    /// Its own first, then in the order of ranks, counted from the root; if all others are ranks
    /// without children, in the pairs of a binomial tree: the same result each time. Each of the
    /// others has a slot of its own, into which it puts, and which therefore need not hold an
    /// identity before.
    Ranks,
}

/// How a rank knows that those it sends to have their slots free again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Reuse {
    /// They notify it, unless another message implies it: [`Schedule::releases`].
    #[default]
    Released,
    /// The caller makes sure, for instance by a barrier after each few operations,
    /// all of which have slots and counters of their own.
    ByCaller,
}

/// What is wrong with a collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// It has no ranks.
    NoRanks,
    /// The root is none of the ranks.
    NoSuchRoot {
        /// The root that was asked for.
        root: u32,
        /// How many ranks there are.
        ranks: u32,
    },
    /// The algorithm can't do it.
    NotBy(Algorithm),
    /// A tree that doesn't branch, or not enough.
    Narrow(Tree),
    /// Pieces without bytes, of a pipeline or of a reduction.
    NoBytes,
    /// All ranks' bytes together are more than a number holds.
    TooLong,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    Barrier,
    Allreduce,
    Broadcast(u32),
    Reduce(u32),
    Gather(u32),
    Scatter(u32),
}

/// A collective operation, to be done any number of times.
///
/// The operation that reduces and the type of its elements are the caller's: a
/// schedule only says where bytes are combined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Collective {
    kind: Kind,
    shape: Shape,
    algorithm: Algorithm,
    order: Order,
    reuse: Reuse,
    largest_combine: u64,
}

impl Collective {
    /// No rank leaves it before all have entered it.
    ///
    /// # Errors
    ///
    /// As [`Collective::allreduce`].
    pub fn barrier(ranks: u32, algorithm: Algorithm) -> Result<Self, ConfigError> {
        if matches!(algorithm, Algorithm::Halving | Algorithm::Pipelined(..)) {
            return Err(ConfigError::NotBy(algorithm));
        }
        Self::new(Kind::Barrier, Shape { ranks, bytes: 0 }, algorithm)
    }

    /// All ranks get what all of them give, combined element by element.
    ///
    /// # Errors
    ///
    /// If there are no ranks, or the algorithm is for something else or unsound.
    pub fn allreduce(shape: Shape, algorithm: Algorithm) -> Result<Self, ConfigError> {
        match algorithm {
            Algorithm::RecursiveDoubling | Algorithm::Halving | Algorithm::Tree(_) => {
                Self::new(Kind::Allreduce, shape, algorithm)
            }
            _ => Err(ConfigError::NotBy(algorithm)),
        }
    }

    /// All ranks get what `root` gives.
    ///
    /// # Errors
    ///
    /// As [`Collective::allreduce`], and if `root` is none of the ranks.
    pub fn broadcast(shape: Shape, root: u32, algorithm: Algorithm) -> Result<Self, ConfigError> {
        match algorithm {
            Algorithm::Tree(_) | Algorithm::Pipelined(..) => {
                Self::rooted(Kind::Broadcast(root), shape, root, algorithm)
            }
            _ => Err(ConfigError::NotBy(algorithm)),
        }
    }

    /// `root` gets what all give, combined element by element.
    ///
    /// # Errors
    ///
    /// As [`Collective::broadcast`].
    pub fn reduce(shape: Shape, root: u32, algorithm: Algorithm) -> Result<Self, ConfigError> {
        match algorithm {
            Algorithm::Halving | Algorithm::Tree(_) => {
                Self::rooted(Kind::Reduce(root), shape, root, algorithm)
            }
            _ => Err(ConfigError::NotBy(algorithm)),
        }
    }

    /// `root` gets what all give, side by side in the order of ranks.
    ///
    /// # Errors
    ///
    /// As [`Collective::broadcast`].
    pub fn gather(shape: Shape, root: u32, algorithm: Algorithm) -> Result<Self, ConfigError> {
        Self::by_tree(Kind::Gather(root), shape, root, algorithm)
    }

    /// Each rank gets its part of what `root` gives, which lies side by side in the
    /// order of ranks.
    ///
    /// # Errors
    ///
    /// As [`Collective::broadcast`].
    pub fn scatter(shape: Shape, root: u32, algorithm: Algorithm) -> Result<Self, ConfigError> {
        Self::by_tree(Kind::Scatter(root), shape, root, algorithm)
    }

    /// Combines in this order.
    #[must_use]
    pub fn in_order(self, order: Order) -> Self {
        Collective { order, ..self }
    }

    /// Slots come free in this way.
    #[must_use]
    pub fn with_reuse(self, reuse: Reuse) -> Self {
        Collective { reuse, ..self }
    }

    /// Combines so many bytes with one message at most: a multiple of an element's
    /// size, and no more than the network's limit (`max_atomic_size`).
    ///
    /// # Errors
    ///
    /// For no bytes.
    pub fn combining_at_most(self, bytes: u64) -> Result<Self, ConfigError> {
        if bytes == 0 {
            return Err(ConfigError::NoBytes);
        }
        Ok(Collective {
            largest_combine: bytes,
            ..self
        })
    }

    /// How many ranks take part, and the bytes of each.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many bytes `rank` gives.
    pub fn input_bytes(&self, rank: u32) -> u64 {
        let Shape { ranks, bytes } = self.shape;
        match self.kind {
            Kind::Barrier => 0,
            Kind::Scatter(root) if rank == root => bytes * u64::from(ranks),
            Kind::Broadcast(root) | Kind::Scatter(root) if rank != root => 0,
            _ => bytes,
        }
    }

    /// How many bytes `rank` gets.
    pub fn result_bytes(&self, rank: u32) -> u64 {
        let Shape { ranks, bytes } = self.shape;
        match self.kind {
            Kind::Barrier => 0,
            Kind::Gather(root) if rank == root => bytes * u64::from(ranks),
            Kind::Reduce(root) | Kind::Gather(root) if rank != root => 0,
            _ => bytes,
        }
    }

    /// What `rank` does.
    ///
    /// # Panics
    ///
    /// If `rank` is none of the ranks.
    pub fn schedule(&self, rank: u32) -> Schedule {
        let Shape { ranks, bytes } = self.shape;
        assert!(rank < ranks, "rank {rank} is none of {ranks}");
        let mut draft = Draft::new(rank, self.shape, self.largest_combine);
        draft.reuse_by_caller = self.reuse == Reuse::ByCaller;
        match (self.kind, self.algorithm) {
            (Kind::Barrier, Algorithm::Dissemination) => algorithms::dissemination(&mut draft),
            (Kind::Barrier | Kind::Allreduce, Algorithm::RecursiveDoubling) => {
                algorithms::recursive_doubling(&mut draft, self.order);
            }
            (Kind::Allreduce, Algorithm::Halving) => {
                algorithms::halving_allreduce(&mut draft, self.order);
            }
            (Kind::Reduce(root), Algorithm::Halving) => {
                algorithms::halving_reduce(draft.rooted_at(root), self.order);
            }
            (Kind::Barrier | Kind::Allreduce, Algorithm::Tree(tree)) => {
                algorithms::reduce_and_broadcast(&mut draft, tree, self.order);
            }
            (Kind::Broadcast(root), Algorithm::Tree(tree)) => {
                algorithms::broadcast(draft.rooted_at(root), tree, bytes);
            }
            (Kind::Broadcast(root), Algorithm::Pipelined(tree, piece)) => {
                algorithms::broadcast(draft.rooted_at(root), tree, piece);
            }
            (Kind::Reduce(root), Algorithm::Tree(tree)) => {
                algorithms::reduce(draft.rooted_at(root), tree, self.order);
            }
            (Kind::Gather(root), Algorithm::Tree(tree)) => {
                algorithms::gather(draft.rooted_at(root), tree);
            }
            (Kind::Scatter(root), Algorithm::Tree(tree)) => {
                algorithms::scatter(draft.rooted_at(root), tree);
            }
            (kind, algorithm) => unreachable!("no {kind:?} is made by {algorithm:?}"),
        }
        draft.schedule
    }

    fn by_tree(
        kind: Kind,
        shape: Shape,
        root: u32,
        algorithm: Algorithm,
    ) -> Result<Self, ConfigError> {
        match algorithm {
            Algorithm::Tree(_) => Self::rooted(kind, shape, root, algorithm),
            _ => Err(ConfigError::NotBy(algorithm)),
        }
    }

    fn rooted(
        kind: Kind,
        shape: Shape,
        root: u32,
        algorithm: Algorithm,
    ) -> Result<Self, ConfigError> {
        let Shape { ranks, .. } = shape;
        if ranks > 0 && root >= ranks {
            return Err(ConfigError::NoSuchRoot { root, ranks });
        }
        Self::new(kind, shape, algorithm)
    }

    fn new(kind: Kind, shape: Shape, algorithm: Algorithm) -> Result<Self, ConfigError> {
        if shape.ranks == 0 {
            return Err(ConfigError::NoRanks);
        }
        // Slots hold a block of each rank, and room to align them.
        let slots = shape.bytes.checked_add(algorithms::ALIGNMENT);
        let slots = slots.and_then(|each| each.checked_mul(u64::from(shape.ranks) + 1));
        slots.ok_or(ConfigError::TooLong)?;
        match algorithm {
            Algorithm::Tree(tree) => tree.check()?,
            Algorithm::Pipelined(_, 0) => return Err(ConfigError::NoBytes),
            Algorithm::Pipelined(tree, _) => tree.check()?,
            Algorithm::Dissemination | Algorithm::RecursiveDoubling | Algorithm::Halving => {}
        }
        Ok(Collective {
            kind,
            shape,
            algorithm,
            order: Order::default(),
            reuse: Reuse::default(),
            largest_combine: u64::MAX,
        })
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::NoRanks => f.write_str("a collective needs one rank at least"),
            ConfigError::NoSuchRoot { root, ranks } => {
                write!(
                    f,
                    "the root is {root}, but there are {ranks} ranks, from 0 on"
                )
            }
            ConfigError::NotBy(algorithm) => {
                write!(
                    f,
                    "{algorithm:?} is for something else: a tree is for everything"
                )
            }
            ConfigError::Narrow(Tree::KNomial(base)) => {
                write!(f, "a k-nomial tree needs a base of 2 or more, not {base}")
            }
            ConfigError::Narrow(Tree::KAry(arity)) => {
                write!(f, "a k-ary tree needs 1 child or more, not {arity}")
            }
            ConfigError::NoBytes => f.write_str("a piece needs one byte at least"),
            ConfigError::TooLong => {
                f.write_str("all ranks' bytes together are more than 2^64: give fewer each")
            }
        }
    }
}

impl core::error::Error for ConfigError {}
