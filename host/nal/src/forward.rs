//! [`forward!`](crate::forward): methods that only pass a call on.

/// Implements methods of [`Nal`](crate::Nal) and [`Wake`](crate::Wake) by the same call to
/// another NAL, so that a wrapper writes only what it changes.
///
/// The braces hold the arms of a `match` on `self`; each names the NAL to call. The names of
/// methods follow, or `..Nal` or `..Wake` for all methods of that trait.
///
/// ```
/// use lintel_nal::{Nal, Wake, forward};
///
/// /// One of two networks, chosen at run time.
/// enum Either<A, B> {
///     A(A),
///     B(B),
/// }
///
/// impl<A: Nal, B: Nal> Nal for Either<A, B> {
///     forward!(self { Either::A(nal) => nal, Either::B(nal) => nal }: ..Nal);
/// }
///
/// impl<A: Nal, B: Nal> Wake for Either<A, B> {
///     forward!(self { Either::A(nal) => nal, Either::B(nal) => nal }: ..Wake);
/// }
/// ```
///
/// A new method of either trait is one more line here.
#[macro_export]
macro_rules! forward {
    ($self:ident $arms:tt: ..Nal) => {
        $crate::forward!($self $arms: capabilities, send, send_lent, leave_to, begin_parts,
            take_part, revoke_grant, note_moved, next, next_inline, done,
            lent_behind, done_lent, receive_into, fetch, fill, recall, backlog, lends, resources, traffic, arrivals);
    };
    ($self:ident $arms:tt: ..Wake) => {
        $crate::forward!($self $arms: flush, has_queued, check_peers, wake_peers, would_move,
            hold_rings, ring_due, ring_held, descriptor, due, needs_progress,
            is_idle, on_readable, all_delivered);
    };
    ($self:ident $arms:tt: $($method:ident),+ $(,)?) => {
        $($crate::forward!(@$method $self $arms);)+
    };

    // One line a method: its inline hint, how it takes `self`, its signature.
    (@capabilities $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&] capabilities() -> $crate::Capabilities);
    };
    (@send $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [#[inline]] [&mut] send(
            to: $crate::names::ProcessId,
            words: &$crate::names::Words,
            body: $crate::Outgoing<'_>
        ) -> Result<(), $crate::Unreachable>);
    };
    (@send_lent $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] send_lent(
            to: $crate::names::ProcessId,
            words: &$crate::names::Words,
            body: $crate::names::Lent<'_>,
            number: u64
        ) -> Result<bool, $crate::Unreachable>);
    };
    (@leave_to $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] leave_to(origin: $crate::Origin));
    };
    (@begin_parts $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] begin_parts(
            origin: $crate::Origin,
            parts: $crate::Parts,
            length: u64
        ) -> Option<(u64, u64)>);
    };
    (@take_part $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] take_part(
            granted: $crate::Granted,
            length: u64
        ) -> Option<(u64, u64)>);
    };
    (@revoke_grant $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] revoke_grant(
            origin: $crate::Origin,
            own: u32
        ) -> bool);
    };
    (@note_moved $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] note_moved(
            to: $crate::names::ProcessId,
            moved: $crate::Moved
        ));
    };
    (@next $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [#[inline]] [&mut] next() -> Option<$crate::Arrival>);
    };
    (@next_inline $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [#[inline(always)]] [&mut] next_inline() -> Option<(
            $crate::Origin,
            $crate::names::Words,
            $crate::names::Claim
        )>);
    };
    (@done $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [#[inline(always)]] [&mut] done(origin: $crate::Origin));
    };
    (@lent_behind $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] lent_behind(
            origin: $crate::Origin,
            places: u32,
            bytes: u64
        ) -> Option<($crate::names::Words, $crate::RemoteLoan)>);
    };
    (@done_lent $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] done_lent(origin: $crate::Origin, messages: u32));
    };
    (@receive_into $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] receive_into(
            origin: $crate::Origin,
            place: $crate::names::Loan
        ));
    };
    (@fetch $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] fetch(
            from: $crate::Origin,
            remote: &$crate::RemoteLoan,
            to: &[$crate::names::Claim]
        ) -> Result<u64, $crate::MoveError>);
    };
    (@fill $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] fill(
            to: $crate::Origin,
            from: &[$crate::names::Claim],
            remote: &$crate::RemoteLoan
        ) -> Result<u64, $crate::MoveError>);
    };
    (@recall $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] recall(lease: &$crate::names::Lease) -> bool);
    };
    (@lends $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] lends(
            to: $crate::names::ProcessId,
            length: u64
        ) -> bool);
    };
    (@backlog $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&] backlog(process: $crate::names::ProcessId) -> u64);
    };
    (@resources $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&] resources() -> $crate::Resources);
    };
    (@traffic $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&] traffic() -> Vec<$crate::names::Traffic>);
    };
    (@arrivals $s:ident $a:tt) => { $crate::forward!(@call $s $a [] [&] arrivals() -> u64); };
    (@flush $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [#[inline(always)]] [&mut] flush() -> bool);
    };
    (@has_queued $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&] has_queued(process: $crate::names::ProcessId) -> bool);
    };
    (@check_peers $s:ident $a:tt) => { $crate::forward!(@call $s $a [] [&mut] check_peers()); };
    (@wake_peers $s:ident $a:tt) => { $crate::forward!(@call $s $a [] [&mut] wake_peers()); };
    (@would_move $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] would_move(
            origin: $crate::Origin,
            length: u64,
            found: $crate::Finder
        ) -> Option<$crate::Parts>);
    };
    (@hold_rings $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] hold_rings(
            to: $crate::names::ProcessId,
            hold: bool
        ));
    };
    (@ring_due $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&mut] ring_due() -> Option<$crate::names::Duration>);
    };
    (@ring_held $s:ident $a:tt) => { $crate::forward!(@call $s $a [] [&mut] ring_held()); };
    (@descriptor $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&] descriptor() -> Option<$crate::names::BorrowedFd<'_>>);
    };
    (@due $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [#[inline(always)]] [&] due() -> Option<$crate::names::Instant>);
    };
    (@needs_progress $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [#[inline]] [&] needs_progress() -> bool);
    };
    (@is_idle $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [#[inline]] [&] is_idle() -> bool);
    };
    (@on_readable $s:ident $a:tt) => { $crate::forward!(@call $s $a [] [&mut] on_readable()); };
    (@all_delivered $s:ident $a:tt) => {
        $crate::forward!(@call $s $a [] [&] all_delivered() -> bool);
    };

    (@call $self:ident $arms:tt [$($hint:tt)*] [$($by:tt)+]
        $method:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?) => {
        $($hint)*
        fn $method($($by)+ $self $(, $argument: $kind)*) $(-> $result)? {
            $crate::forward!(@match $self $arms $method($($argument),*))
        }
    };
    (@match $self:ident { $($nal:pat => $to:expr),+ $(,)? } $method:ident $arguments:tt) => {
        match $self {
            $($nal => $to.$method $arguments,)+
        }
    };
}
