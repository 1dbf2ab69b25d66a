//! Messages that come before the application has posted an entry for them.

/// How many useless deferrals in a row end deferring, and how many a useful one makes up for.
const MOST_CREDIT: u32 = 8;
const CREDIT_OF_USE: u32 = 2;
/// Without credit, every such unexpected message is deferred nevertheless: the application may
/// do something else by now.
const TRY_EVERY: u32 = 64;

/// Whether a caller's look leaves an unexpected message where it is until the caller looks again.
///
/// MPI libraries poll until they find nothing before they return to a program that has sent
/// something and posts its next receive then. What lands behind the message that they waited for would
/// become unexpected a moment too early: its bytes are copied twice, and its header is kept, matched
/// again and forgotten. So looks that handle other messages leave it, and one look that handles
/// nothing; the helper's looks leave none.
#[derive(Debug)]
pub struct Deferral {
    /// The message that comes next was left.
    is_left: bool,
    /// By a look that has handled nothing.
    in_vain: bool,
    /// How many useless deferrals there may be.
    credit: u32,
    /// Unexpected messages so far, each counted once.
    met: u32,
}

impl Default for Deferral {
    fn default() -> Deferral {
        Deferral {
            is_left: false,
            in_vain: false,
            credit: MOST_CREDIT,
            met: 0,
        }
    }
}

impl Deferral {
    /// A caller's look has met an unexpected message, behind so many that it has handled; whether
    /// it leaves this one, and ends.
    pub fn on_unexpected(&mut self, handled: usize) -> bool {
        if handled > 0 {
            self.on_looked(handled);
        }
        if !self.is_left {
            self.met = self.met.wrapping_add(1);
            self.is_left = self.credit > 0 || self.met % TRY_EVERY == 0;
            self.in_vain = handled == 0;
            return self.is_left;
        }
        if self.in_vain {
            self.is_left = false;
            self.credit = self.credit.saturating_sub(1);
            return false;
        }
        self.in_vain = true;
        true
    }

    /// A caller's look has handled so many messages, none of which was unexpected.
    #[inline(always)]
    pub fn on_looked(&mut self, handled: usize) {
        if self.is_left && handled > 0 {
            self.is_left = false;
            self.credit = (self.credit + CREDIT_OF_USE).min(MOST_CREDIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An application that posts no entry; whether its first look has left the message.
    fn defers_in_vain(deferral: &mut Deferral) -> bool {
        let is_left = deferral.on_unexpected(0);
        assert!(
            !is_left || !deferral.on_unexpected(0),
            "a second look in vain"
        );
        is_left
    }

    #[test]
    fn a_message_is_left_by_one_look_that_handles_nothing() {
        let mut deferral = Deferral::default();
        assert!(deferral.on_unexpected(3), "behind others");
        assert!(
            deferral.on_unexpected(0),
            "what the caller waited for has come"
        );
        assert!(!deferral.on_unexpected(0));
        assert!(deferral.on_unexpected(0), "another one");
    }

    #[test]
    fn deferring_ends_where_it_is_of_no_use_and_is_tried_again_now_and_then() {
        let mut deferral = Deferral::default();
        let left = (0..10 * TRY_EVERY).filter(|_| defers_in_vain(&mut deferral));
        assert_eq!(left.count() as u32, MOST_CREDIT + 10);
    }

    #[test]
    fn deferring_goes_on_while_one_in_three_is_of_use() {
        let mut deferral = Deferral::default();
        for _ in 0..1000 {
            assert!(deferral.on_unexpected(1));
            deferral.on_looked(1);
            for _ in 0..CREDIT_OF_USE {
                assert!(defers_in_vain(&mut deferral));
            }
        }
        for _ in 0..MOST_CREDIT - CREDIT_OF_USE {
            assert!(defers_in_vain(&mut deferral));
        }
        assert!(!defers_in_vain(&mut deferral));
    }
}
