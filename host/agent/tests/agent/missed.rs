//! A client that has died while its session doesn't know of it yet.

use crate::rig::{client_of, first_word, wait_until};
use lintel_bridge::{ClientSocket, Listener, SharedRegion};
use lintel_fault::job::{Job, Worker};
use lintel_runtime::{Session, Settings};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Accepts the next client, and starts its session.
fn accept(listener: &Listener, settings: Settings) -> (ClientSocket, Session) {
    let mut pending = None;
    wait_until("a client connects", || {
        pending = listener.accept().expect("the listener is open");
        pending.is_some()
    });
    let pending = pending.expect("a client has connected");
    let mut hello = None;
    wait_until("it sends its hello", || {
        hello = pending.hello().ok();
        hello.is_some()
    });
    let hello = hello.expect("it was awaited");
    let region = Arc::new(SharedRegion::create().expect("there is memory"));
    let session = Session::start(pending.peer(), region.clone(), settings, hello);
    pending.send_region(&region).expect("it listens");
    (pending, session.expect("there are threads"))
}

/// A job of shared memory, and the settings of its sessions.
fn job() -> (Job, Settings) {
    let program = std::env::current_exe().expect("a test has a file");
    let job = Job::new(program.to_str().expect("a path of words"));
    let nid = job.places().process(0).nid;
    let settings = Settings::of_node(Ipv4Addr::from(nid)).expect("the environment says nothing");
    let settings = Settings {
        between: None,
        job: job.name().to_owned(),
        ..settings
    };
    (job, settings)
}

mod only_shm {
    use super::*;

    #[test]
    fn what_goes_to_a_dead_client_is_undeliverable_before_its_session_ends() {
        let (job, settings) = job();
        let listener = Listener::open(job.name(), settings.nid).expect("there is /dev/shm");
        let mut one: Worker = client_of(&job, 1, "accelerated");
        assert_eq!(first_word(&mut one), "ready");
        let mut two = client_of(&job, 2, "generic");
        let (_pending, session) = accept(&listener, settings);
        assert_eq!(first_word(&mut two), "ready");
        two.kill();
        for words in [
            "put 2 8",
            "put 2 5000",
            "put 2 100000",
            "put 2 4000000",
            "get 2 8",
            "get 2 100000",
            "add 2",
            "fetch-add 2",
        ] {
            one.send(words);
            let line = one.line();
            assert!(line.starts_with("Undeliverable"), "{words}: {line}");
        }
        wait_until("the session ends", || {
            session.end();
            session.is_over()
        });
    }
}
