//! The commands that a job would run, as a shell reads them: `yod --show`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use crate::error::Error;
use crate::job::Job;
use crate::layout::{Nodes, RankSlot};
use crate::plan::{Plan, SECRET, SECRET_STDIN, Scope};
use crate::resources::cores_for;
use crate::shell::quoted;

impl Job {
    /// What would be run: one line of shell per process, grouped by host if there are hosts.
    ///
    /// # Errors
    /// The job is invalid.
    pub fn describe(&self) -> Result<String, Error> {
        let plan = Plan::new(self)?;
        let Nodes::Hosts(hosts) = &self.nodes else {
            return plan.describe(Scope::AllNodes);
        };
        let mut text = String::new();
        for (node, host) in hosts.iter().take(plan.layout.addresses.len()).enumerate() {
            let _ = writeln!(text, "# on {} ({})", host.name, host.address);
            text.push_str(&plan.describe(Scope::Node(node))?);
        }
        Ok(text)
    }
}

impl Plan {
    /// One line of shell per process of `scope`, agents first.
    fn describe(&self, scope: Scope) -> Result<String, Error> {
        let mut text = String::new();
        if self.needs_agents() {
            for address in self.agent_addresses(scope)? {
                let _ = writeln!(text, "{}", self.agent_line(address));
            }
        }
        let cores = cores_for(self.bind);
        for (index, slot) in self.slots(scope).enumerate() {
            let core = cores.get(index % cores.len().max(1));
            let _ = writeln!(text, "{}", self.rank_line(slot, core));
        }
        Ok(text)
    }

    fn agent_line(&self, address: Ipv4Addr) -> String {
        let agent = self.agent.as_deref().unwrap_or("lintel-agent".as_ref());
        let (words, agent) = (self.shell_words(Vec::new()), quoted(agent));
        format!("echo '<secret>' | {words} {agent} --iface {address} {SECRET_STDIN} &")
    }

    fn rank_line(&self, slot: &RankSlot, core: Option<&usize>) -> String {
        let mut set = self.layout.variables(slot);
        set.push(("PMI_FD".into(), "<socket>".into()));
        if !self.needs_agents() {
            set.push((SECRET.into(), "<secret>".into()));
        }
        let mut words = vec![self.shell_words(set)];
        words.extend(core.map(|core| format!("taskset -c {core}")));
        words.push(quoted(&self.program));
        words.extend(self.args.iter().map(|argument| quoted(argument)));
        words.join(" ")
    }

    /// The variables of a process as a shell would set them, secrets left out.
    fn shell_words(&self, own: Vec<(OsString, OsString)>) -> String {
        let job = ("LINTEL_JOB".into(), "<job>".into());
        let given = self.env.iter().filter(|(name, _)| name != SECRET);
        let all = given.cloned().chain(own).chain([job]);
        let words =
            all.map(|(name, value)| format!("{}={}", name.to_string_lossy(), quoted(&value)));
        format!("env {}", words.collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_shell() {
        let mut job = Job::new(2, "./my prog");
        job.args = vec!["it's".into(), "-x".into()];
        let text = job.describe().unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(
            text.lines()
                .all(|line| line.ends_with(r"'./my prog' 'it'\''s' -x")),
            "{text}"
        );
        assert!(text.contains("PMI_RANK=1 PMI_SIZE=2"), "{text}");
    }
}
