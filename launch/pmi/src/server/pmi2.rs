//! Requests of a rank in PMI-2.

use std::collections::BTreeMap;

use super::{Event, Server, Violation};
use crate::mapping::MAPPING_KEY;
use crate::wire2::Message;

/// Values that the ranks of a node exchange, and the ranks that wait for them.
#[derive(Debug)]
pub(super) struct NodeAttributes {
    /// The node of each rank.
    nodes: Vec<usize>,
    known: BTreeMap<(usize, String), String>,
    /// Rank, key and the request of a rank that waits until another of its node has put the value.
    waiting: Vec<(usize, String, Message)>,
}

impl NodeAttributes {
    pub(super) fn new(nodes: &[usize]) -> NodeAttributes {
        NodeAttributes {
            nodes: nodes.to_vec(),
            known: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    fn get(&self, rank: usize, key: &str) -> Option<&String> {
        self.known.get(&(self.nodes[rank], key.into()))
    }

    /// Keeps a value, and returns the requests that have waited for it.
    fn put(&mut self, rank: usize, key: &str, value: &str) -> Vec<(usize, Message)> {
        let node = self.nodes[rank];
        self.known.insert((node, key.into()), value.into());
        let nodes = &self.nodes;
        let served =
            |(rank, wanted, _): &(usize, String, Message)| nodes[*rank] == node && wanted == key;
        let (ready, still) = self.waiting.drain(..).partition(served);
        self.waiting = still;
        let ready: Vec<(usize, String, Message)> = ready;
        ready
            .into_iter()
            .map(|(rank, _, request)| (rank, request))
            .collect()
    }
}

impl Server {
    pub(super) fn on_message(&mut self, rank: usize, message: &Message) -> Result<(), Violation> {
        match message.command() {
            "fullinit" => self.on_fullinit(rank, message),
            "job-getid" => {
                let id = self.kvs_name.clone();
                self.accept(rank, message, |answer| answer.with("jobid", &id));
            }
            "kvs-put" => self.on_kvs_put(rank, message),
            "kvs-get" => self.on_kvs_get(rank, message),
            "kvs-fence" => return self.on_barrier_in(rank),
            "info-getjobattr" => self.on_job_attribute(rank, message),
            "info-putnodeattr" => self.on_put_node_attribute(rank, message),
            "info-getnodeattr" => self.on_node_attribute(rank, message),
            "finalize" => {
                self.ranks[rank].finalized = true;
                self.accept(rank, message, |answer| answer);
            }
            "abort" => self.on_abort_message(rank, message),
            "spawn" | "name-publish" | "name-unpublish" | "name-lookup" | "job-connect"
            | "job-disconnect" => self.refuse(rank, message, "not offered"),
            other => return Err(Violation::UnknownCommand(other.into())),
        }
        Ok(())
    }

    pub(super) fn answer_fence(&mut self, rank: usize) {
        self.accept(rank, &Message::new("kvs-fence"), |answer| answer);
    }

    fn on_fullinit(&mut self, rank: usize, message: &Message) {
        let size = self.ranks.len();
        self.accept(rank, message, |answer| {
            answer
                .with("pmi-version", "2")
                .with("pmi-subversion", "0")
                .with("rank", &rank.to_string())
                .with("size", &size.to_string())
                .with("appnum", "0")
                .with("debugged", "FALSE")
                .with("pmiverbose", "FALSE")
        });
    }

    fn on_kvs_put(&mut self, rank: usize, message: &Message) {
        let stored = match (message.get("key"), message.get("value")) {
            (Some(key), Some(value)) => self.store(key, value),
            _ => Err("key or value missing"),
        };
        match stored {
            Ok(()) => self.accept(rank, message, |answer| answer),
            Err(refusal) => self.refuse(rank, message, refusal),
        }
    }

    fn on_kvs_get(&mut self, rank: usize, message: &Message) {
        let key = message.get("key").unwrap_or_default();
        let value = self.store.get(key).cloned();
        self.accept(rank, message, |answer| found(answer, "flag", value));
    }

    fn on_job_attribute(&mut self, rank: usize, message: &Message) {
        let value = match message.get("key") {
            Some(key) if key == MAPPING_KEY => self.store.get(MAPPING_KEY).cloned(),
            Some("universeSize") => Some(self.ranks.len().to_string()),
            _ => None,
        };
        self.accept(rank, message, |answer| found(answer, "found", value));
    }

    fn on_put_node_attribute(&mut self, rank: usize, message: &Message) {
        let (Some(key), Some(value)) = (message.get("key"), message.get("value")) else {
            return self.refuse(rank, message, "key or value missing");
        };
        let waited = self.nodes.put(rank, key, value);
        self.accept(rank, message, |answer| answer);
        for (rank, request) in waited {
            self.on_node_attribute(rank, &request);
        }
    }

    fn on_node_attribute(&mut self, rank: usize, message: &Message) {
        let key = message.get("key").unwrap_or_default();
        let value = self.nodes.get(rank, key).cloned();
        let waits = message.get("wait").is_some_and(|word| word == "TRUE");
        if value.is_none() && waits {
            let waiting = (rank, key.into(), message.clone());
            return self.nodes.waiting.push(waiting);
        }
        self.accept(rank, message, |answer| found(answer, "found", value));
    }

    fn on_abort_message(&mut self, rank: usize, message: &Message) {
        let code = message.number("exitcode");
        self.events.push_back(Event::Abort {
            rank,
            code: code.and_then(|code| i32::try_from(code).ok()).unwrap_or(1),
            message: message.get("msg").unwrap_or_default().into(),
        });
    }

    /// Answers `request` with what `fill` adds.
    fn accept(&mut self, rank: usize, request: &Message, fill: impl FnOnce(Message) -> Message) {
        let answer = fill(begin_answer(request)).with("rc", "0");
        self.ranks[rank].output.extend(answer.encode());
    }

    fn refuse(&mut self, rank: usize, request: &Message, why: &str) {
        let answer = begin_answer(request).with("rc", "1").with("errmsg", why);
        self.ranks[rank].output.extend(answer.encode());
    }
}

/// An answer names the thread that asked, if the request named one.
fn begin_answer(request: &Message) -> Message {
    let answer = Message::new(&format!("{}-response", request.command()));
    match request.get("thrid") {
        Some(thread) => answer.with("thrid", thread),
        None => answer,
    }
}

fn found(answer: Message, flag: &str, value: Option<String>) -> Message {
    match value {
        Some(value) => answer.with(flag, "TRUE").with("value", &value),
        None => answer.with(flag, "FALSE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire2::Messages;

    /// A server for `nodes` whose ranks have all greeted as PMI-2.
    fn server(nodes: &[usize]) -> Server {
        let mut server = Server::on_nodes(nodes, "job");
        for rank in 0..nodes.len() {
            server.on_bytes(rank, b"cmd=init pmi_version=2 pmi_subversion=0\n");
            let reply = server.poll_output(rank).unwrap();
            assert!(reply.ends_with(b"pmi_version=2 pmi_subversion=0 rc=0\n"));
        }
        server
    }

    fn ask(server: &mut Server, rank: usize, request: Message) -> Option<Message> {
        server.on_bytes(rank, &request.encode());
        answer(server, rank)
    }

    fn answer(server: &mut Server, rank: usize) -> Option<Message> {
        let output = server.poll_output(rank)?;
        Messages::default().take_message(&mut &output[..]).unwrap()
    }

    fn word(message: &Option<Message>, key: &str) -> String {
        let message = message.as_ref().expect("an answer");
        message.get(key).unwrap_or("nothing").to_string()
    }

    #[test]
    fn ranks_learn_their_place_and_the_mapping() {
        let mut server = server(&[0, 0, 1]);
        let init = ask(
            &mut server,
            1,
            Message::new("fullinit").with("pmirank", "1"),
        );
        assert_eq!(
            (word(&init, "rank"), word(&init, "size")),
            ("1".into(), "3".into())
        );
        let get = Message::new("info-getjobattr")
            .with("key", MAPPING_KEY)
            .with("thrid", "7");
        let mapping = ask(&mut server, 1, get);
        assert_eq!(word(&mapping, "value"), "(vector,(0,1,2),(1,1,1))");
        assert_eq!(word(&mapping, "thrid"), "7");
    }

    #[test]
    fn both_protocols_share_store_and_barrier() {
        let mut server = Server::new(2, "job");
        server.on_bytes(0, b"cmd=init pmi_version=1 pmi_subversion=1\n");
        server.on_bytes(
            1,
            b"cmd=init pmi_version=2 pmi_subversion=0\n    14cmd=kvs-fence;",
        );
        server.poll_output(0);
        server.poll_output(1);
        server.on_bytes(0, b"cmd=put kvsname=job key=a value=b\ncmd=barrier_in\n");
        let reply = String::from_utf8(server.poll_output(0).unwrap()).unwrap();
        assert!(reply.ends_with("cmd=barrier_out\n"), "{reply}");
        let fence = answer(&mut server, 1);
        assert_eq!(word(&fence, "cmd"), "kvs-fence-response");
        let value = ask(&mut server, 1, Message::new("kvs-get").with("key", "a"));
        assert_eq!(
            (word(&value, "flag"), word(&value, "value")),
            ("TRUE".into(), "b".into())
        );
        let nothing = ask(&mut server, 1, Message::new("kvs-get").with("key", "z"));
        assert_eq!(word(&nothing, "flag"), "FALSE");
    }

    #[test]
    fn a_rank_waits_for_what_its_node_will_know() {
        let mut server = server(&[0, 0, 1]);
        let get = Message::new("info-getnodeattr")
            .with("key", "k")
            .with("wait", "TRUE");
        assert_eq!(ask(&mut server, 0, get.clone()), None);
        assert_eq!(ask(&mut server, 2, get), None);
        let put = Message::new("info-putnodeattr")
            .with("key", "k")
            .with("value", "v");
        assert_eq!(word(&ask(&mut server, 1, put), "rc"), "0");
        assert_eq!(word(&answer(&mut server, 0), "value"), "v");
        assert_eq!(answer(&mut server, 2), None, "it sits on another node");
    }

    #[test]
    fn what_pmi_1_cannot_carry_is_refused_and_no_line_is_injected() {
        let mut server = Server::new(2, "job");
        server.on_bytes(0, b"cmd=init pmi_version=1 pmi_subversion=1\n");
        server.on_bytes(1, b"cmd=init pmi_version=2 pmi_subversion=0\n");
        server.poll_output(0);
        server.poll_output(1);
        let lies = [
            ("a", "b\ncmd=barrier_out"),
            ("a", "b\r"),
            ("a", "b\tc"),
            ("a", "b\0c"),
            ("a\nb", "c"),
        ];
        for (key, value) in lies {
            let put = Message::new("kvs-put").with("key", key);
            let refusal = ask(&mut server, 1, put.with("value", value));
            assert_eq!(word(&refusal, "rc"), "1", "{key:?} {value:?}");
            let why = "control_character_in_key_or_value";
            assert_eq!(word(&refusal, "errmsg"), why);
        }
        server.on_bytes(0, b"cmd=get kvsname=job key=a\n");
        let reply = String::from_utf8(server.poll_output(0).unwrap()).unwrap();
        let nothing = "cmd=get_result rc=-1 msg=key_not_found value=unknown\n";
        assert_eq!(reply, nothing);
    }

    #[test]
    fn refusals_and_aborts_are_reported() {
        let mut server = server(&[0]);
        assert_eq!(word(&ask(&mut server, 0, Message::new("spawn")), "rc"), "1");
        let put = Message::new("kvs-put").with("key", "").with("value", "v");
        assert_eq!(
            word(&ask(&mut server, 0, put), "errmsg"),
            "invalid_key_length"
        );
        let abort = Message::new("abort")
            .with("exitcode", "3")
            .with("msg", "why");
        assert_eq!(ask(&mut server, 0, abort), None);
        let message = "why".to_string();
        let expected = Event::Abort {
            rank: 0,
            code: 3,
            message,
        };
        assert_eq!(server.poll_event(), Some(expected));
        server.on_bytes(0, b"cmd=barrier_in\n");
        assert!(matches!(server.poll_event(), Some(Event::Violation { .. })));
    }
}
