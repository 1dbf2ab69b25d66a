//! A NAL whose kind is chosen while the program runs.

use crate::{Nal, Wake, forward};

impl<N: Nal + ?Sized> Nal for Box<N> {
    forward!(self { nal => (**nal) }: ..Nal);
}

impl<N: Wake + ?Sized> Wake for Box<N> {
    forward!(self { nal => (**nal) }: ..Wake);
}
