//! Trees whose branches are runs of ranks.
//!
//! Rank 0 is the root here; for another root the ranks are shifted. Every
//! branch holds consecutive ranks, its own root first, so that what belongs to a
//! branch lies together in memory.

use alloc::vec::Vec;

use crate::collective::ConfigError;

/// How ranks are joined to a tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tree {
    /// A rank's parent has the rank's lowest digit that isn't zero set to zero, in
    /// digits to this base: 2 is the binomial tree. Branches differ in size, and
    /// the root works most.
    KNomial(u32),
    /// A rank's branch is divided evenly among so many children: 1 is a chain, 2
    /// the binary tree.
    KAry(u32),
}

/// A rank and those below it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Branch {
    /// The branch's own root, and the lowest of its ranks.
    pub first: u32,
    /// How many they are.
    pub ranks: u32,
}

/// A rank's place in a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Family {
    /// The subtree whose root the rank is.
    pub branch: Branch,
    /// The rank above it; none for the root.
    pub parent: Option<u32>,
    /// The branches below it, in the order of ranks.
    pub children: Vec<Branch>,
}

impl Tree {
    /// The place of `rank` among `ranks`.
    ///
    /// # Panics
    ///
    /// If `rank` is not below `ranks`.
    pub fn family(self, rank: u32, ranks: u32) -> Family {
        assert!(rank < ranks, "rank {rank} is none of {ranks}");
        match self {
            Tree::KNomial(base) => k_nomial(rank, ranks, base),
            Tree::KAry(1) => chain(rank, ranks),
            Tree::KAry(arity) => k_ary(rank, ranks, arity),
        }
    }

    /// Whether it reaches all ranks.
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        match self {
            Tree::KNomial(..2) | Tree::KAry(0) => Err(ConfigError::Narrow(self)),
            _ => Ok(()),
        }
    }
}

impl Family {
    /// The branches below, the largest first: those have the longest way to go.
    pub fn largest_first(&self) -> Vec<Branch> {
        let mut children = self.children.clone();
        children.reverse();
        children.sort_by_key(|child| core::cmp::Reverse(child.ranks));
        children
    }

    /// The place of a child among the children.
    pub(crate) fn index_of(&self, child: u32) -> u64 {
        let place = self.children.iter().position(|c| c.first == child);
        place.expect("a rank is its parent's child") as u64
    }
}

fn k_nomial(rank: u32, ranks: u32, base: u32) -> Family {
    let (rank, ranks, base) = (u64::from(rank), u64::from(ranks), u64::from(base));
    let narrow = |wide: u64| u32::try_from(wide).expect("a rank is below 2^32");
    let branch = |first: u64, place: u64| Branch {
        first: narrow(first),
        ranks: narrow(place.min(ranks - first)),
    };
    let mut place = 1;
    let mut children = Vec::new();
    while place < ranks && rank % (place * base) == 0 {
        let each = (1..base).map(|digit| rank + digit * place);
        children.extend(
            each.take_while(|&child| child < ranks)
                .map(|child| branch(child, place)),
        );
        place *= base;
    }
    let above = rank - rank % (place * base);
    Family {
        branch: branch(rank, if rank == 0 { ranks } else { place }),
        parent: (rank > 0).then(|| narrow(above)),
        children,
    }
}

fn chain(rank: u32, ranks: u32) -> Family {
    let branch = |first| Branch {
        first,
        ranks: ranks - first,
    };
    Family {
        branch: branch(rank),
        parent: rank.checked_sub(1),
        children: (rank + 1 < ranks)
            .then(|| branch(rank + 1))
            .into_iter()
            .collect(),
    }
}

/// Goes down from the root to the rank.
fn k_ary(rank: u32, ranks: u32, arity: u32) -> Family {
    let mut family = Family {
        branch: Branch { first: 0, ranks },
        parent: None,
        children: divide(Branch { first: 0, ranks }, arity),
    };
    while family.branch.first != rank {
        let holds = |child: &&Branch| (child.first..child.first + child.ranks).contains(&rank);
        let child = *family
            .children
            .iter()
            .find(holds)
            .expect("branches leave no gap");
        family = Family {
            branch: child,
            parent: Some(family.branch.first),
            children: divide(child, arity),
        };
    }
    family
}

fn divide(branch: Branch, arity: u32) -> Vec<Branch> {
    let below = branch.ranks - 1;
    let mut first = branch.first + 1;
    let mut children = Vec::new();
    for i in 0..arity.min(below) {
        let ranks = below / arity + u32::from(i < below % arity);
        children.push(Branch { first, ranks });
        first += ranks;
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREES: [Tree; 7] = [
        Tree::KNomial(2),
        Tree::KNomial(3),
        Tree::KNomial(8),
        Tree::KAry(1),
        Tree::KAry(2),
        Tree::KAry(3),
        Tree::KAry(100),
    ];

    #[test]
    fn children_divide_what_is_below_a_rank_and_know_their_parent() {
        for tree in TREES {
            for ranks in 1..70 {
                for rank in 0..ranks {
                    let family = tree.family(rank, ranks);
                    let mut next = rank + 1;
                    for &child in &family.children {
                        assert_eq!(child.first, next, "{tree:?} {rank} of {ranks}");
                        let below = tree.family(child.first, ranks);
                        assert_eq!(below.parent, Some(rank), "{tree:?} {rank} of {ranks}");
                        assert_eq!(below.branch, child, "{tree:?} {rank} of {ranks}");
                        next += child.ranks;
                    }
                    assert_eq!(
                        next,
                        rank + family.branch.ranks,
                        "{tree:?} {rank} of {ranks}"
                    );
                }
                assert_eq!(tree.family(0, ranks).branch.ranks, ranks);
            }
        }
    }

    #[test]
    fn a_k_nomial_root_has_a_child_for_each_digit_in_each_place() {
        let children = Tree::KNomial(4).family(0, 64).children;
        let firsts: Vec<u32> = children.iter().map(|child| child.first).collect();
        assert_eq!(firsts, [1, 2, 3, 4, 8, 12, 16, 32, 48]);
    }

    #[test]
    fn the_largest_branches_come_first_where_far_ones_do() {
        let far = Tree::KNomial(2).family(0, 11).largest_first();
        let firsts: Vec<u32> = far.iter().map(|child| child.first).collect();
        assert_eq!(firsts, [4, 8, 2, 1]);
    }
}
