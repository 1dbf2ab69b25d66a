//! What runs a job's ranks: the local launcher of this process, or launchers on other
//! machines. To the supervisor both take requests and report events.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::error::Error;
use crate::job::Job;
use crate::layout::Nodes;
use crate::local_launcher::{self, LocalLauncher};
use crate::message::{BackendEvent, Request};
use crate::plan::{Plan, Scope};
use crate::poll::Interest;
use crate::program;
use crate::rank::Input;
use crate::remote_host::{self, RemoteHost};
use crate::resources::raise_descriptor_limit;
use crate::signals::Signals;
use crate::watchdog::Watchdog;

pub(crate) enum Backend {
    Local(LocalLauncher),
    /// One for each node.
    Remote(Vec<RemoteHost>),
}

/// What a descriptor is polled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Local(local_launcher::Source),
    Remote(usize, remote_host::Source),
}

impl Backend {
    /// Starts every rank of `job`. `input` is where rank 0's standard input comes from,
    /// if rank 0 runs in this process's local launcher.
    ///
    /// # Errors
    /// The first process that can't be started; none is left then.
    pub(crate) fn start(
        job: &Job,
        plan: &Plan,
        input: Input,
        watchdog: &mut Watchdog,
        signals: &Signals,
    ) -> Result<Backend, Error> {
        let Nodes::Hosts(hosts) = &job.nodes else {
            program::find(&job.program)?;
            let local = LocalLauncher::start(plan, Scope::AllNodes, input, watchdog, signals)?;
            return Ok(Backend::Local(local));
        };
        program::find(&job.launch_agent()[0])?;
        // Two pipes and a process descriptor each.
        raise_descriptor_limit(3 * hosts.len());
        let nodes = hosts.iter().take(plan.layout.addresses.len()).enumerate();
        let hosts = nodes.map(|node| RemoteHost::start(job, plan, node, watchdog));
        hosts
            .collect::<Result<_, _>>()
            .map(Backend::Remote)
            .map_err(|error| Error::System {
                what: "starting the launch agent",
                error,
            })
    }

    /// What to poll: then call [`Backend::on_ready`].
    pub(crate) fn interests(&self) -> Vec<Interest<'_, Source>> {
        fn named<'a, S>(
            interests: Vec<Interest<'a, S>>,
            name: impl Fn(S) -> Source,
        ) -> impl Iterator<Item = (Source, BorrowedFd<'a>, PollFlags)> {
            let each = interests.into_iter();
            each.map(move |(source, fd, flags)| (name(source), fd, flags))
        }
        match self {
            Backend::Local(local) => named(local.interests(true), Source::Local).collect(),
            Backend::Remote(hosts) => {
                let each = hosts.iter().enumerate();
                each.flat_map(|(n, host)| {
                    named(host.interests(), move |source| Source::Remote(n, source))
                })
                .collect()
            }
        }
    }

    pub(crate) fn on_ready(
        &mut self,
        source: Source,
        flags: PollFlags,
        emit: &mut impl FnMut(BackendEvent),
    ) {
        match (self, source) {
            (Backend::Local(local), Source::Local(source)) => {
                local.on_ready(source, flags, &mut |report| {
                    emit(BackendEvent::Report(report))
                });
            }
            (Backend::Remote(hosts), Source::Remote(n, source)) => hosts[n].on_ready(source, emit),
            _ => unreachable!("each source was returned by this backend"),
        }
    }

    /// Sends a request to the launcher of `node`.
    pub(crate) fn request(
        &mut self,
        node: usize,
        request: Request,
        emit: &mut impl FnMut(BackendEvent),
    ) {
        match self {
            Backend::Local(local) => {
                local.on_request(request, &mut |report| emit(BackendEvent::Report(report)))
            }
            Backend::Remote(hosts) => hosts[node].on_request(request),
        }
    }

    /// Sends the same request to every launcher.
    pub(crate) fn request_all(&mut self, request: &Request) {
        match self {
            // No request to all launchers has an answer.
            Backend::Local(local) => local.on_request(request.clone(), &mut |_| {}),
            Backend::Remote(hosts) => hosts
                .iter_mut()
                .for_each(|host| host.on_request(request.clone())),
        }
    }

    /// Asks every launcher what the processes of a job wait for.
    pub(crate) fn request_state(&mut self, job: &str, emit: &mut impl FnMut(BackendEvent)) {
        let request = || Request::State { job: job.into() };
        match self {
            Backend::Local(local) => local.on_request(request(), &mut |report| {
                emit(BackendEvent::Report(report));
            }),
            Backend::Remote(hosts) => hosts.iter_mut().for_each(|host| host.on_request(request())),
        }
    }

    /// Writes queued requests as far as that goes without waiting.
    pub(crate) fn flush_requests(&mut self) {
        if let Backend::Remote(hosts) = self {
            hosts.iter_mut().for_each(RemoteHost::flush_requests);
        }
    }

    /// When [`Backend::on_clock`] wants to be called, from `now` on.
    pub(crate) fn next_step(&self, now: Instant) -> Option<Duration> {
        match self {
            Backend::Local(_) => None,
            Backend::Remote(hosts) => hosts.iter().filter_map(|host| host.next_step(now)).min(),
        }
    }

    pub(crate) fn on_clock(&mut self, now: Instant, emit: &mut impl FnMut(BackendEvent)) {
        if let Backend::Remote(hosts) = self {
            hosts.iter_mut().for_each(|host| host.on_clock(now, emit));
        }
    }

    /// Ends whatever is left; agents have `grace`. Returns the names of hosts that
    /// may still run something of the job.
    pub(crate) fn finish(self, grace: Duration) -> Vec<String> {
        match self {
            Backend::Local(local) => {
                local.finish(grace);
                Vec::new()
            }
            Backend::Remote(mut hosts) => {
                hosts.iter_mut().for_each(RemoteHost::request_shutdown);
                let deadline = Instant::now() + SHUTDOWN_TIMEOUT;
                let left = hosts.into_iter().filter_map(|host| host.finish(deadline));
                left.collect()
            }
        }
    }
}

/// How long a host may take to end what is left: its agents' grace, and the way there.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
