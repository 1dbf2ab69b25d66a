//! The plan of a job: where each rank runs, and the environment of each process.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::job::{Bind, Job};
use crate::layout::{Layout, RankSlot};
use crate::secret::{Secret, random_digits};

/// All that is known of a job's processes before the first one starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The value of `LINTEL_JOB`.
    pub(crate) id: String,
    pub(crate) layout: Layout,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) bind: Bind,
    pub(crate) agent: Option<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    secret: Secret,
}

/// A machine's part of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope {
    AllNodes,
    Node(usize),
}

impl Plan {
    /// Makes the plan of `job`.
    ///
    /// # Errors
    /// The job is invalid, or the system returns no random bytes.
    pub(crate) fn new(job: &Job) -> Result<Plan, Error> {
        let refused = |what| move |error| Error::System { what, error };
        let layout = Layout::new(job.ranks, &job.nodes, job.map)?;
        check_network(job, &layout)?;
        let secret = Secret::draw().map_err(refused("drawing the job's secret"))?;
        // A name that others can guess lets them make files of that name before the job.
        let id = random_digits::<8>().map_err(refused("drawing the job's name"))?;
        Ok(Plan {
            id,
            layout,
            program: job.program.clone(),
            args: job.args.clone(),
            bind: job.bind,
            agent: job.agent.clone(),
            env: job.env.clone(),
            secret,
        })
    }

    /// The plan for another machine: with those variables of this process that are meant
    /// for the job.
    pub(crate) fn for_another_machine(&self) -> Plan {
        let meant = |name: &OsString| {
            let name = name.to_string_lossy();
            let family = ["PTL_", "LINTEL_"]
                .iter()
                .any(|start| name.starts_with(start));
            let path = ["PATH", "LD_LIBRARY_PATH"].contains(&&*name);
            (family || path) && name != SECRET && !of_another_launcher(&name)
        };
        let mut plan = self.clone();
        plan.env = std::env::vars_os()
            .filter(|(name, _)| meant(name))
            .collect();
        plan.env.extend(self.env.iter().cloned());
        plan
    }

    /// The ranks of a machine.
    pub(crate) fn slots(&self, scope: Scope) -> impl Iterator<Item = &RankSlot> {
        let slots = self.layout.slots.iter();
        slots.filter(move |slot| match scope {
            Scope::AllNodes => true,
            Scope::Node(node) => slot.node == node,
        })
    }

    /// What every process of the job finds in its environment. The secret isn't part of it,
    /// nor is that of a launcher that has started this one.
    pub(crate) fn set_common_variables(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            if of_another_launcher(&name.to_string_lossy()) {
                command.env_remove(name);
            }
        }
        for (name, value) in OF_LIBRARIES {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        command
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .env("LINTEL_JOB", &self.id)
            .env_remove(SECRET);
    }

    /// What every rank finds in its environment: the common variables, and the secret
    /// if the rank itself exchanges messages with other nodes.
    pub(crate) fn set_variables_of_ranks(&self, command: &mut Command) {
        self.set_common_variables(command);
        if !self.needs_agents() {
            command.env(SECRET, self.secret.digits());
        }
    }

    /// The line that an agent reads from its standard input.
    pub(crate) fn line_for_agent(&self) -> String {
        format!("{}\n", self.secret.digits())
    }

    /// Whether the ranks' engines live in agents.
    pub(crate) fn needs_agents(&self) -> bool {
        self.variable("PTL_MODE")
            .is_some_and(|mode| mode == "generic")
    }

    /// The addresses of the nodes that need an agent.
    ///
    /// # Errors
    /// The ranks would choose the node's address by `PTL_IFACE`, which is no address.
    pub(crate) fn agent_addresses(&self, scope: Scope) -> Result<Vec<Ipv4Addr>, Error> {
        let given = || match self.variable("PTL_IFACE").filter(|text| !text.is_empty()) {
            None => Ok(Ipv4Addr::LOCALHOST),
            Some(text) => {
                let address = text.to_string_lossy().parse();
                address.map_err(|_| Error::NoAddress(text))
            }
        };
        let nodes = self.layout.addresses.iter().enumerate();
        nodes
            .filter(|(node, _)| match scope {
                Scope::AllNodes => true,
                Scope::Node(only) => *node == only,
            })
            .map(|(_, address)| address.map_or_else(given, Ok))
            .collect()
    }

    /// What the ranks will find under `name`, unless it differs from rank to rank.
    fn variable(&self, name: &str) -> Option<OsString> {
        let mut set = self.env.iter().rev();
        let given = set.find(|(given, _)| given == name);
        given.map_or_else(|| std::env::var_os(name), |(_, value)| Some(value.clone()))
    }
}

/// Settings of libraries that ranks find unless the user has made others. Of libfabric: over tcp the provider
/// `ofi_rxm` takes 4096 receive buffers of 16 KiB for all peers together, 68 MiB in each process, and fills
/// them with zeros at once. Over verbs it takes 128 for each peer, which are enough for all over tcp.
const OF_LIBRARIES: [(&str, &str); 1] = [("FI_OFI_RXM_MSG_RX_SIZE", "128")];

/// Where the secret is in the environment of ranks that have an engine of their own.
pub(crate) const SECRET: &str = "LINTEL_SECRET";
/// Makes an agent read the secret from its standard input.
pub(crate) const SECRET_STDIN: &str = "--secret-stdin";

/// Whether the variable comes from a launcher that has started this one, or describes it:
/// a rank must not take it for this launcher's.
fn of_another_launcher(name: &str) -> bool {
    ["PMI_", "PMIX_", "OMPI_COMM_WORLD_", "HYDI_", "LINTEL_PMI"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Shared memory alone is no network between nodes: on one machine messages would go through it
/// as if the virtual nodes were one, and on several they would go nowhere.
fn check_network(job: &Job, layout: &Layout) -> Result<(), Error> {
    let mut given = job.env.iter().rev();
    let networks = given.find(|(name, _)| name == "PTL_NAL");
    match (networks, layout.addresses.len()) {
        (Some((_, list)), nodes @ 2..) if list == "shm" => Err(Error::NoNetwork { nodes }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsStr;

    use super::*;
    use crate::layout::Nodes;

    fn job(ranks: usize, env: &[(&str, &str)]) -> Job {
        let mut job = Job::new(ranks, "true");
        job.env = env.iter().map(|(n, v)| (n.into(), v.into())).collect();
        job
    }

    fn plan(ranks: usize, env: &[(&str, &str)]) -> Plan {
        Plan::new(&job(ranks, env)).expect("a sound job")
    }

    /// What `set` puts into a command's environment; `None` if it removes the variable.
    fn environment(set: impl FnOnce(&mut Command)) -> BTreeMap<String, Option<String>> {
        let mut command = Command::new("true");
        set(&mut command);
        let text = |word: &OsStr| word.to_string_lossy().into_owned();
        let all = command.get_envs();
        all.map(|(name, value)| (text(name), value.map(text)))
            .collect()
    }

    #[test]
    fn several_nodes_need_a_network_between_them() {
        let planned = |nodes, nal| {
            let mut job = job(2, &[("PTL_NAL", nal)]);
            job.nodes = Nodes::Virtual {
                count: nodes,
                first: Ipv4Addr::LOCALHOST,
            };
            Plan::new(&job).map(drop)
        };
        let refused = planned(2, "shm").expect_err("there is none");
        assert!(refused.to_string().contains("shm,udp"), "{refused}");
        assert_eq!(refused.exit_code(), 2);
        assert!(planned(1, "shm").is_ok() && planned(2, "shm,udp").is_ok());
    }

    #[test]
    fn jobs_have_names_and_secrets_of_their_own() {
        let (one, two) = (plan(1, &[]), plan(1, &[]));
        assert_eq!((one.id.len(), one.secret.digits().len()), (16, 64));
        assert_ne!(one.id, two.id);
        assert_ne!(one.secret.digits(), two.secret.digits());
        assert!(!format!("{one:?}").contains(one.secret.digits()));
    }

    #[test]
    fn ranks_get_the_secret_unless_an_agent_does() {
        let accelerated = plan(1, &[("PTL_MODE", "accelerated")]);
        let set = environment(|command| accelerated.set_variables_of_ranks(command));
        assert_eq!(set[SECRET].as_deref(), Some(accelerated.secret.digits()));
        assert_eq!(set["LINTEL_JOB"].as_ref(), Some(&accelerated.id));
        let generic = plan(1, &[("PTL_MODE", "generic")]);
        let set = environment(|command| generic.set_variables_of_ranks(command));
        assert_eq!(set[SECRET], None);
        let line = generic.line_for_agent();
        assert_eq!(line.trim_end(), generic.secret.digits());
    }

    #[test]
    fn the_last_value_of_a_variable_counts() {
        assert!(!plan(1, &[("PTL_MODE", "generic"), ("PTL_MODE", "accelerated")]).needs_agents());
        assert!(plan(1, &[("PTL_MODE", "accelerated"), ("PTL_MODE", "generic")]).needs_agents());
    }

    #[test]
    fn agents_have_the_addresses_of_their_nodes() {
        let first = Ipv4Addr::new(127, 0, 0, 5);
        let mut job = job(3, &[]);
        job.nodes = Nodes::Virtual { count: 2, first };
        let plan = Plan::new(&job).expect("a sound job");
        let second = Ipv4Addr::new(127, 0, 0, 6);
        let all = plan.agent_addresses(Scope::AllNodes).expect("addresses");
        assert_eq!(all, [first, second]);
        let one = plan.agent_addresses(Scope::Node(1)).expect("an address");
        assert_eq!(one, [second]);
        let ranks = |scope| plan.slots(scope).map(|slot| slot.rank).collect::<Vec<_>>();
        assert_eq!(ranks(Scope::AllNodes), [0, 1, 2]);
        assert_eq!(ranks(Scope::Node(1)), [2]);
    }

    #[test]
    fn an_agent_takes_the_address_that_the_ranks_would() {
        let given = plan(1, &[("PTL_IFACE", "10.1.2.3")]);
        let addresses = given.agent_addresses(Scope::AllNodes).expect("an address");
        assert_eq!(addresses, [Ipv4Addr::new(10, 1, 2, 3)]);
        let wrong = plan(1, &[("PTL_IFACE", "eth0")]);
        let refused = wrong.agent_addresses(Scope::AllNodes);
        assert!(matches!(refused, Err(Error::NoAddress(text)) if text == "eth0"));
        let empty = plan(1, &[("PTL_IFACE", "")]);
        let addresses = empty.agent_addresses(Scope::AllNodes).expect("an address");
        assert_eq!(addresses, [Ipv4Addr::LOCALHOST]);
    }

    #[test]
    fn another_machine_gets_what_is_meant_for_the_job() {
        let plan = plan(1, &[("COLOUR", "blue")]).for_another_machine();
        let has = |name: &str| plan.env.iter().any(|(own, _)| own == name);
        assert!(has("COLOUR") && has("PATH"));
        assert!(!has("HOME") && !has(SECRET));
    }

    #[test]
    fn variables_of_a_launcher_around_this_one_are_recognised() {
        for name in ["PMI_FD", "PMIX_RANK", "HYDI_CONTROL_FD", "LINTEL_PMI"] {
            assert!(of_another_launcher(name), "{name}");
        }
        for name in ["PATH", "PTL_MODE", "LINTEL_JOB", "MPI_LOCALRANKID"] {
            assert!(!of_another_launcher(name), "{name}");
        }
    }
}
