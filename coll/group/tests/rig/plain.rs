//! Random operations, and what plain loops give for them.

use super::{Library, run};
use lintel_claim::combine;
use lintel_group::{Call, Combine, Datatype, Group, Operation, Reduction, Region};

/// Of floats whose sums are exact.
pub const SUM: Combine = Combine {
    operation: Operation::Sum,
    datatype: Datatype::Float,
};

/// Random numbers, the same at all ranks (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// What a rank gives to an operation: floats with exact sums.
pub fn given(rank: u32, salt: u64, bytes: u64) -> Vec<u8> {
    let value = |i: u64| (u64::from(rank) * 7 + i + salt) as f32;
    let sixty: Vec<u8> = (0..60).flat_map(|i| value(i).to_ne_bytes()).collect();
    sixty.into_iter().cycle().take(bytes as usize).collect()
}

/// What a rank is to get, by a plain loop.
pub fn expected(call: Call, rank: u32, ranks: u32, salt: u64) -> Vec<u8> {
    let all = |bytes| {
        (0..ranks)
            .flat_map(move |of| given(of, salt, bytes))
            .collect()
    };
    let sum = |count: u64| {
        let region = |rank| {
            let region = Region::new(count * 4);
            region.write(0, &given(rank, salt, count * 4));
            region
        };
        let sum = region(0);
        for rank in 1..ranks {
            combine(
                SUM.operation,
                SUM.datatype,
                region(rank).claim(),
                sum.claim(),
            );
        }
        let mut bytes = vec![0; sum.len() as usize];
        sum.read(0, &mut bytes);
        bytes
    };
    match call {
        Call::Allreduce(Reduction { count, .. }) => sum(count),
        Call::Reduce { root, reduction } if root == rank => sum(reduction.count),
        Call::Broadcast { root, bytes } if root != rank => given(root, salt, bytes),
        Call::Gather { root, bytes } if root == rank => all(bytes),
        Call::Scatter { root, bytes } => {
            let all = given(root, salt, bytes * u64::from(ranks));
            let begin = (u64::from(rank) * bytes) as usize;
            all[begin..begin + bytes as usize].to_vec()
        }
        _ => Vec::new(),
    }
}

/// Runs an operation on what `salt` gives, and compares its result.
pub fn check(group: &mut Group<Library>, call: Call, salt: u64) {
    let (rank, ranks) = (group.rank(), group.ranks());
    let (gives, _) = group.lengths(call, None).expect("a sound call");
    let got = run(group, call, &given(rank, salt, gives));
    let want = expected(call, rank, ranks, salt);
    assert!(got == want, "{call:?} at rank {rank} of {ranks}");
}

/// Any operation, of few or many bytes.
pub fn any_call(random: &mut Random, ranks: u32) -> Call {
    let most = [13, 200, 20_000, 400_000][random.below(4) as usize];
    any_call_below(most, random, ranks)
}

/// Any operation, of fewer bytes than that.
pub fn any_call_below(most: u64, random: &mut Random, ranks: u32) -> Call {
    let root = random.below(ranks.into()) as u32;
    let bytes = random.below(most);
    let reduction = Reduction {
        combine: SUM,
        count: bytes / 4,
    };
    match random.below(6) {
        0 => Call::Barrier,
        1 => Call::Allreduce(reduction),
        2 => Call::Reduce { root, reduction },
        3 => Call::Broadcast { root, bytes },
        4 => Call::Gather { root, bytes },
        _ => Call::Scatter { root, bytes },
    }
}
