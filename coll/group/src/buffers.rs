//! The caller's send and receive buffers.

use crate::portals::Combine;
use lintel_claim::{Claim, combine_into, combine_with};
use std::ops::Range;

/// What an operation reads and writes of its caller's, piece by piece. Only copies are
/// made, during calls; the network never sees it.
pub trait Buffers {
    /// Bytes that are given.
    fn input(&self, at: Range<usize>) -> &[u8];
    /// The place of bytes that result.
    fn output(&mut self, at: Range<usize>) -> &mut [u8];
    /// Copies bytes that are given to a place in the result, which is as long.
    fn keep(&mut self, from: Range<usize>, to: Range<usize>);
    /// Bytes that are given and the same place in the result, unless they may overlap.
    fn separate(&mut self, at: Range<usize>) -> Option<(&[u8], &mut [u8])>;
    /// Combines elements that are given with as many of another rank's; the result has the same
    /// place as what is given.
    fn combine(&mut self, how: Combine, others: Claim, at: Range<usize>) {
        if let Some((own, to)) = self.separate(at.clone()) {
            combine_with(how.operation, how.datatype, own, others, to);
            return;
        }
        self.keep(at.clone(), at.clone());
        combine_into(how.operation, how.datatype, others, self.output(at));
    }
    /// How many bytes are given, and how many may result.
    fn lengths(&self) -> (usize, usize);
}

/// Two buffers that don't overlap; either may be empty.
#[derive(Debug, Default)]
pub struct Separate<'a> {
    /// The send buffer, of the length that the rank gives at least.
    pub input: &'a [u8],
    /// Where the result goes.
    pub output: &'a mut [u8],
}

/// One buffer that holds both, which may overlap: an operation in place.
#[derive(Debug)]
pub struct InPlace<'a> {
    /// The memory that both ranges are in.
    pub bytes: &'a mut [u8],
    /// The send buffer, as a range of `bytes`.
    pub input: Range<usize>,
    /// Where the result goes.
    pub output: Range<usize>,
}

impl Buffers for Separate<'_> {
    #[inline]
    fn input(&self, at: Range<usize>) -> &[u8] {
        &self.input[at]
    }

    #[inline]
    fn output(&mut self, at: Range<usize>) -> &mut [u8] {
        &mut self.output[at]
    }

    #[inline]
    fn keep(&mut self, from: Range<usize>, to: Range<usize>) {
        self.output[to].copy_from_slice(&self.input[from]);
    }

    #[inline]
    fn separate(&mut self, at: Range<usize>) -> Option<(&[u8], &mut [u8])> {
        Some((&self.input[at.clone()], &mut self.output[at]))
    }

    #[inline]
    fn lengths(&self) -> (usize, usize) {
        (self.input.len(), self.output.len())
    }
}

impl<'a> InPlace<'a> {
    /// All of `bytes` are given, and replaced by what results.
    pub(crate) fn all(bytes: &'a mut [u8]) -> InPlace<'a> {
        let all = 0..bytes.len();
        InPlace {
            bytes,
            input: all.clone(),
            output: all,
        }
    }
}

impl Buffers for InPlace<'_> {
    fn input(&self, at: Range<usize>) -> &[u8] {
        &self.bytes[self.input.clone()][at]
    }

    fn output(&mut self, at: Range<usize>) -> &mut [u8] {
        &mut self.bytes[self.output.clone()][at]
    }

    fn keep(&mut self, from: Range<usize>, to: Range<usize>) {
        let begin = self.input.start + from.start;
        let end = self.input.start + from.end;
        let to = self.output.start + to.start;
        if begin != to {
            self.bytes.copy_within(begin..end, to);
        }
    }

    fn separate(&mut self, _: Range<usize>) -> Option<(&[u8], &mut [u8])> {
        None
    }

    fn lengths(&self) -> (usize, usize) {
        (self.input.len(), self.output.len())
    }
}
