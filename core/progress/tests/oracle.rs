//! The state machine beside an oracle that keeps everything that ever happened and searches it.

use core::time::Duration;
use lintel_progress::{
    BellOrder, HelperNext, Interval, Limits, Orders, Progress, Sleeper, WatcherLook, WatcherNext,
};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Event {
    /// With the bell armed or not.
    Poll(bool),
    Disarm,
    NetworkIdle,
    Stop,
    Resume,
    BeginSleep,
    EndSleep,
    /// With a message queued or not.
    HelperLook(bool),
    HelperSleep(Option<u32>),
    WakeHelper,
    HurryHelper,
    WatcherLook(WatcherLook),
}

/// Of the helper: its last interval is four times the first.
const LOOK_COST: Duration = Duration::from_nanos(12_500);

/// All that happened, with what was ordered and which step came next.
#[derive(Default)]
struct Oracle(Vec<(Event, Orders, Next)>);

#[derive(Clone, Copy, PartialEq, Debug, Default)]
enum Next {
    #[default]
    Nothing,
    CanDisarm,
    Helper(HelperNext),
    Watcher(WatcherNext),
}

impl Oracle {
    fn count(&self, wanted: Event) -> usize {
        self.0.iter().filter(|(event, ..)| *event == wanted).count()
    }

    fn asleep(&self) -> usize {
        self.count(Event::BeginSleep) - self.count(Event::EndSleep)
    }

    fn is_stopped(&self) -> bool {
        let of_that_kind = |event: &Event| matches!(event, Event::Stop | Event::Resume);
        let last = self.0.iter().rev().find(|(event, ..)| of_that_kind(event));
        matches!(last, Some((Event::Stop, ..)))
    }

    /// What happened since that.
    fn since(&self, that: impl Fn(&(Event, Orders, Next)) -> bool) -> &[(Event, Orders, Next)] {
        let last = self.0.iter().rposition(that);
        &self.0[last.map_or(0, |last| last + 1)..]
    }

    fn helper_sleeps(&self) -> bool {
        let looks = |(event, orders, next): &(Event, Orders, Next)| {
            *event == Event::WakeHelper
                || orders.wake_helper
                || matches!(next, Next::Helper(HelperNext::PollAgain(_)))
        };
        let sleeps = |(.., next): &(Event, Orders, Next)| *next == Next::Helper(HelperNext::Sleep);
        let last = self
            .0
            .iter()
            .rev()
            .find(|entry| looks(entry) || sleeps(entry));
        last.is_none_or(sleeps)
    }

    fn is_watching(&self) -> bool {
        let parks = |(event, orders, next): &(Event, Orders, Next)| {
            matches!(event, Event::WatcherLook(WatcherLook::Polled { .. }))
                && *next == Next::Watcher(WatcherNext::Park)
                && !orders.unpark_watcher
        };
        self.since(parks)
            .iter()
            .any(|(_, orders, _)| orders.unpark_watcher)
    }

    fn polled_since(&self, that: impl Fn(&(Event, Orders, Next)) -> bool) -> bool {
        let polls = |(event, ..): &(Event, Orders, Next)| matches!(event, Event::Poll(_));
        self.since(that).iter().any(polls)
    }

    fn arm(&self, sleeper: Sleeper) -> Orders {
        Orders {
            bell: Some(BellOrder::Arm(sleeper)),
            unpark_watcher: !self.is_watching(),
            ..Orders::default()
        }
    }

    fn wake_helper(&self) -> Orders {
        Orders {
            wake_helper: self.helper_sleeps(),
            ..Orders::default()
        }
    }

    fn expect(&self, event: Event) -> (Orders, Next) {
        let nothing = (Orders::default(), Next::Nothing);
        match event {
            Event::Poll(false) | Event::Resume | Event::HelperSleep(_) => nothing,
            Event::Poll(true) => {
                let resets = |(event, _, next): &(Event, Orders, Next)| {
                    *event == Event::Disarm || *next == Next::Helper(HelperNext::Sleep)
                };
                let armed = |(event, ..): &&(Event, Orders, Next)| *event == Event::Poll(true);
                let polls = 1 + self.since(resets).iter().filter(armed).count();
                let many = polls >= Limits::default().disarm_after as usize;
                match many && self.asleep() == 0 {
                    true => (Orders::default(), Next::CanDisarm),
                    false => nothing,
                }
            }
            Event::Disarm => {
                let orders = Orders {
                    bell: Some(BellOrder::Disarm),
                    ..self.wake_helper()
                };
                (orders, Next::Nothing)
            }
            Event::NetworkIdle => {
                let orders = Orders {
                    unpark_watcher: !self.is_watching(),
                    ..Orders::default()
                };
                (orders, Next::Nothing)
            }
            Event::Stop => (self.arm(Sleeper::Helper), Next::Nothing),
            Event::BeginSleep => (self.arm(Sleeper::Caller), Next::Nothing),
            Event::EndSleep if self.asleep() == 1 => (self.wake_helper(), Next::Nothing),
            Event::EndSleep => {
                let orders = Orders {
                    bell: Some(BellOrder::Arm(Sleeper::Caller)),
                    ..Orders::default()
                };
                (orders, Next::Nothing)
            }
            Event::HelperLook(true) => (Orders::default(), Next::Helper(HelperNext::Retry)),
            Event::HelperLook(false) => self.expect_helper(),
            Event::WakeHelper => (self.wake_helper(), Next::Nothing),
            Event::HurryHelper => {
                let orders = Orders {
                    wake_helper: self.helper_looks_seldom(),
                    ..Orders::default()
                };
                (orders, Next::Nothing)
            }
            Event::WatcherLook(look) => self.expect_watcher(look),
        }
    }

    /// The looks at intervals since these last began anew.
    fn intervals(&self) -> usize {
        let restarts = |(event, _, next): &(Event, Orders, Next)| {
            *event == Event::HurryHelper || *next == Next::Helper(HelperNext::Sleep)
        };
        let since = self.since(restarts).iter();
        since.filter(|(.., next)| is_interval(*next)).count()
    }

    fn helper_looks_seldom(&self) -> bool {
        !self.helper_sleeps() && self.intervals() > 1
    }

    fn expect_helper(&self) -> (Orders, Next) {
        let polls = |(.., next): &(Event, Orders, Next)| is_interval(*next);
        if self.polled_since(polls) && self.asleep() == 0 && !self.is_stopped() {
            let limits = Limits::default();
            let doubled = 1 << self.intervals().min(8);
            let interval = (limits.interval * doubled).min(LOOK_COST * limits.last_per_cost);
            let next = HelperNext::PollAgain(Interval {
                naps: limits.naps,
                least: interval,
                slack: Duration::ZERO,
            });
            return (Orders::default(), Next::Helper(next));
        }
        let orders = match self.asleep() {
            0 => self.arm(Sleeper::Helper),
            _ => Orders::default(),
        };
        (orders, Next::Helper(HelperNext::Sleep))
    }

    fn expect_watcher(&self, look: WatcherLook) -> (Orders, Next) {
        let looked = |(event, ..): &(Event, Orders, Next)| {
            matches!(
                event,
                Event::WatcherLook(WatcherLook::Unparked { .. } | WatcherLook::Polled { .. })
            )
        };
        let polled = self.polled_since(looked) && self.asleep() == 0;
        let (orders, next) = match look {
            WatcherLook::More => (Orders::default(), WatcherNext::Continue),
            WatcherLook::Polled { idle: false, .. } if polled => {
                (self.wake_helper(), WatcherNext::Park)
            }
            _ if !self.is_watching() => (Orders::default(), WatcherNext::Park),
            WatcherLook::Unparked { queued: true } | WatcherLook::Polled { queued: true, .. } => {
                (Orders::default(), WatcherNext::Yield)
            }
            _ => (Orders::default(), WatcherNext::Watch),
        };
        (orders, Next::Watcher(next))
    }
}

fn is_interval(next: Next) -> bool {
    matches!(next, Next::Helper(HelperNext::PollAgain(_)))
}

fn carry_out(machine: &mut Progress<u32>, event: Event) -> (Orders, Next) {
    let nothing = Orders::default();
    let orders = match event {
        Event::Poll(armed) => {
            let next = match machine.on_poll(armed, || 0) {
                true => Next::CanDisarm,
                false => Next::Nothing,
            };
            return (nothing, next);
        }
        Event::Disarm => machine.disarm(),
        Event::NetworkIdle => machine.on_network_idle(),
        Event::Stop => machine.stop_polling(),
        Event::Resume => {
            machine.resume_polling();
            nothing
        }
        Event::BeginSleep => machine.begin_sleep(),
        Event::EndSleep => machine.end_sleep(),
        Event::HelperLook(queued) => {
            let (orders, next) = machine.on_helper_looked(queued);
            return (orders, Next::Helper(next));
        }
        Event::HelperSleep(deadline) => {
            machine.on_helper_sleeps(deadline);
            nothing
        }
        Event::WakeHelper => machine.wake_helper(),
        Event::HurryHelper => machine.hurry_helper(),
        Event::WatcherLook(look) => {
            let (orders, next) = machine.on_watcher_looked(look);
            return (orders, Next::Watcher(next));
        }
    };
    (orders, Next::Nothing)
}

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }

    fn flips(&mut self) -> bool {
        self.below(2) == 0
    }
}

fn event(random: &mut Random, oracle: &Oracle) -> Event {
    match random.below(24) {
        0 => Event::NetworkIdle,
        1 => Event::Stop,
        2 => Event::Resume,
        3 => Event::BeginSleep,
        4 | 5 if oracle.asleep() > 0 => Event::EndSleep,
        6..=8 => Event::HelperLook(random.below(8) == 0),
        9 => Event::HelperSleep(random.flips().then(|| random.below(8) as u32)),
        10 => Event::WakeHelper,
        15 => Event::HurryHelper,
        11 => Event::WatcherLook(WatcherLook::More),
        12 => Event::WatcherLook(WatcherLook::Unparked {
            queued: random.flips(),
        }),
        13 | 14 => Event::WatcherLook(WatcherLook::Polled {
            idle: random.flips(),
            queued: random.flips(),
        }),
        _ => Event::Poll(random.below(4) != 0),
    }
}

#[test]
fn the_machine_does_what_its_whole_history_says() {
    for seed in 1..=200 {
        println!("seed {seed}");
        let (mut random, mut oracle) = (Random(seed * 0x9E37_79B9), Oracle::default());
        let mut machine = Progress::new(Limits::default());
        machine.add_watcher();
        machine.set_look_cost(LOOK_COST);
        let mut next = None;
        for step in 0..400 {
            let event = next.take().unwrap_or_else(|| event(&mut random, &oracle));
            let expected = oracle.expect(event);
            let (orders, then) = carry_out(&mut machine, event);
            assert_eq!((orders, then), expected, "step {step}: {event:?}");
            oracle.0.push((event, orders, then));
            assert_eq!(machine.callers_sleep(), oracle.asleep() > 0);
            let deadline = oracle.0.iter().rev().find_map(|(event, ..)| match event {
                Event::HelperSleep(deadline) => Some(*deadline),
                _ => None,
            });
            let oversleeps = oracle.helper_sleeps() && deadline.flatten().is_none_or(|d| d > 4);
            assert_eq!(machine.helper_oversleeps(4), oversleeps);
            assert_eq!(machine.helper_looks_seldom(), oracle.helper_looks_seldom());
            next = (then == Next::CanDisarm).then_some(Event::Disarm);
        }
    }
}
