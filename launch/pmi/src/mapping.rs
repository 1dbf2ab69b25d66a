//! Which ranks share a node, in the words of the key `PMI_process_mapping`.
//!
//! `(vector,(first,count,each),…)` puts `each` ranks on node `first`, then on the
//! next, on `count` nodes in all; block follows block, and after the last the first
//! begins anew until every rank is placed.

/// The mapping of ranks to nodes, `nodes` giving each rank's node.
///
/// ```
/// use lintel_pmi::mapping::process_mapping;
///
/// assert_eq!(process_mapping(&[0, 0, 1, 1]), "(vector,(0,2,2))");
/// assert_eq!(process_mapping(&[0, 0, 1]), "(vector,(0,1,2),(1,1,1))");
/// assert_eq!(process_mapping(&[0, 1, 0, 1, 0]), "(vector,(0,2,1))");
/// ```
pub fn process_mapping(nodes: &[usize]) -> String {
    let blocks = blocks(nodes);
    let enough = (1..blocks.len())
        .find(|&count| expand(&blocks[..count], nodes.len()).eq(nodes.iter().copied()))
        .unwrap_or(blocks.len());
    let mut text = String::from("(vector");
    for Block { first, count, each } in &blocks[..enough] {
        text.push_str(&format!(",({first},{count},{each})"));
    }
    text.push(')');
    text
}

/// The node of each of `size` ranks, as `text` says; `None` if it is no mapping.
///
/// ```
/// use lintel_pmi::mapping::nodes_of_ranks;
///
/// assert_eq!(nodes_of_ranks("(vector,(0,2,1))", 3), Some(vec![0, 1, 0]));
/// ```
pub fn nodes_of_ranks(text: &str, size: usize) -> Option<Vec<usize>> {
    let body = text.trim().strip_prefix("(vector,(")?.strip_suffix("))")?;
    let blocks: Option<Vec<Block>> = body.split("),(").map(Block::parse).collect();
    Some(expand(&blocks?, size).collect())
}

/// The key under which launchers keep the mapping.
pub const MAPPING_KEY: &str = "PMI_process_mapping";

/// `each` ranks on each of `count` nodes from `first` on.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: usize,
    count: usize,
    each: usize,
}

impl Block {
    fn parse(text: &str) -> Option<Block> {
        let numbers: Result<Vec<u32>, _> = text.split(',').map(|n| n.trim().parse()).collect();
        match numbers.ok()?[..] {
            // An empty block, repeated, would never place a rank.
            [first, count, each] if count > 0 && each > 0 => Some(Block {
                first: first as usize,
                count: count as usize,
                each: each as usize,
            }),
            _ => None,
        }
    }
}

fn blocks(nodes: &[usize]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for run in nodes.chunk_by(|a, b| a == b) {
        let (first, each) = (run[0], run.len());
        match blocks.last_mut() {
            Some(last) if last.each == each && last.first + last.count == first => last.count += 1,
            _ => blocks.push(Block {
                first,
                count: 1,
                each,
            }),
        }
    }
    blocks
}

/// The node of each of `size` ranks, as a reader of `blocks` understands them.
fn expand(blocks: &[Block], size: usize) -> impl Iterator<Item = usize> + '_ {
    let nodes = blocks.iter().cycle().flat_map(|block| {
        let each = block.each;
        (block.first..block.first + block.count)
            .flat_map(move |node| std::iter::repeat_n(node, each))
    });
    nodes.take(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_as_the_same_placement() {
        let uneven = [0, 0, 0, 1, 1, 2, 2];
        let cyclic: Vec<usize> = (0..4096).map(|rank| rank % 3).collect();
        let apart = [2, 0, 0, 1, 5];
        for nodes in [&uneven[..], &cyclic, &apart, &[0]] {
            let text = process_mapping(nodes);
            assert_eq!(nodes_of_ranks(&text, nodes.len()).as_deref(), Some(nodes));
        }
        assert_eq!(process_mapping(&cyclic), "(vector,(0,3,1))");
    }

    #[test]
    fn texts_that_are_no_mapping_give_nothing() {
        for text in [
            "",
            "(vector)",
            "(vector,())",
            "(vector,(0,1))",
            "(vector,(0,0,4))",
            "(vector,(0,1,0))",
            "(matrix,(0,1,1))",
            "(vector,(0,1,-1))",
        ] {
            assert_eq!(nodes_of_ranks(text, 2), None, "{text}");
        }
    }
}
