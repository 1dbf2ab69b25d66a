//! Where a job's ranks are: with a crew of this process, or on other machines. To the
//! launcher it is one thing that takes orders and has news.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::crew::{self, Crew, make_room_for_descriptors};
use crate::guard::Guard;
use crate::host::{self, Host, News};
use crate::job::{Error, Job};
use crate::layout::Nodes;
use crate::message::Order;
use crate::plan::{Here, Plan};
use crate::poll::Interest;
use crate::program;
use crate::rank::Input;
use crate::signals::Signals;

pub(crate) enum Places {
    Crew(Crew),
    /// One for each node.
    Hosts(Vec<Host>),
}

/// What a descriptor is polled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Crew(crew::Source),
    Host(usize, host::Source),
}

impl Places {
    /// Starts every rank of `job`. `input` is where rank 0's standard input comes from,
    /// should it be in this process's crew.
    ///
    /// # Errors
    /// The first process that can't be started; none is left then.
    pub(crate) fn start(
        job: &Job,
        plan: &Plan,
        input: Input,
        guard: &mut Guard,
        signals: &Signals,
    ) -> Result<Places, Error> {
        let Nodes::Hosts(hosts) = &job.nodes else {
            program::find(&job.program)?;
            let crew = Crew::start(plan, Here::All, input, guard, signals)?;
            return Ok(Places::Crew(crew));
        };
        program::find(&job.launch_agent()[0])?;
        // Two pipes and a process descriptor each.
        make_room_for_descriptors(3 * hosts.len());
        let nodes = hosts.iter().take(plan.layout.addresses.len()).enumerate();
        let hosts = nodes.map(|node| Host::start(job, plan, node, guard));
        hosts
            .collect::<Result<_, _>>()
            .map(Places::Hosts)
            .map_err(|error| Error::System {
                what: "starting the launch agent",
                error,
            })
    }

    /// What to poll: then call [`Places::on_ready`].
    pub(crate) fn interests(&self) -> Vec<Interest<'_, Source>> {
        fn named<'a, S>(
            interests: Vec<Interest<'a, S>>,
            name: impl Fn(S) -> Source,
        ) -> impl Iterator<Item = (Source, BorrowedFd<'a>, PollFlags)> {
            let each = interests.into_iter();
            each.map(move |(source, fd, flags)| (name(source), fd, flags))
        }
        match self {
            Places::Crew(crew) => named(crew.interests(true), Source::Crew).collect(),
            Places::Hosts(hosts) => {
                let each = hosts.iter().enumerate();
                each.flat_map(|(n, host)| {
                    named(host.interests(), move |source| Source::Host(n, source))
                })
                .collect()
            }
        }
    }

    pub(crate) fn on_ready(
        &mut self,
        source: Source,
        flags: PollFlags,
        tell: &mut impl FnMut(News),
    ) {
        match (self, source) {
            (Places::Crew(crew), Source::Crew(source)) => {
                crew.on_ready(source, flags, &mut |report| tell(News::Report(report)));
            }
            (Places::Hosts(hosts), Source::Host(n, source)) => hosts[n].on_ready(source, tell),
            _ => unreachable!("a source comes from these very places"),
        }
    }

    /// Orders something of the keeper of `rank`, which sits on `node`.
    pub(crate) fn order(&mut self, node: usize, order: Order, tell: &mut impl FnMut(News)) {
        match self {
            Places::Crew(crew) => crew.obey(order, &mut |report| tell(News::Report(report))),
            Places::Hosts(hosts) => hosts[node].obey(order),
        }
    }

    /// Orders the same of all.
    pub(crate) fn order_all(&mut self, order: &Order) {
        match self {
            // No order to all is answered.
            Places::Crew(crew) => crew.obey(order.clone(), &mut |_| {}),
            Places::Hosts(hosts) => hosts.iter_mut().for_each(|host| host.obey(order.clone())),
        }
    }

    /// Sends what was ordered, as far as that goes without waiting.
    pub(crate) fn push_orders(&mut self) {
        if let Places::Hosts(hosts) = self {
            hosts.iter_mut().for_each(Host::push_orders);
        }
    }

    /// When [`Places::on_clock`] wants to be called, from `now` on.
    pub(crate) fn next_step(&self, now: Instant) -> Option<Duration> {
        match self {
            Places::Crew(_) => None,
            Places::Hosts(hosts) => hosts.iter().filter_map(|host| host.next_step(now)).min(),
        }
    }

    pub(crate) fn on_clock(&mut self, now: Instant, tell: &mut impl FnMut(News)) {
        if let Places::Hosts(hosts) = self {
            hosts.iter_mut().for_each(|host| host.on_clock(now, tell));
        }
    }

    /// Ends whatever is left; agents have `grace`. Gives the names of hosts where
    /// something may still be.
    pub(crate) fn finish(self, grace: Duration) -> Vec<String> {
        match self {
            Places::Crew(crew) => {
                crew.finish(grace);
                Vec::new()
            }
            Places::Hosts(mut hosts) => {
                hosts.iter_mut().for_each(Host::say_farewell);
                let deadline = Instant::now() + REMOTE_END;
                let left = hosts.into_iter().filter_map(|host| host.finish(deadline));
                left.collect()
            }
        }
    }
}

/// How long a host may take to end what is left: its agents' grace, and the way there.
const REMOTE_END: Duration = Duration::from_secs(5);
