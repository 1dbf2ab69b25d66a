//! A client that has died while its session doesn't know of it yet.

use crate::rig::{first_word, guest_of, wait_until};
use lintel_bridge::{Listener, PendingClient, SharedRegion};
use lintel_fault::job::{Job, Worker};
use lintel_runtime::{Session, Settings};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Lets in whoever is at the door, and gives him a session.
fn let_in(door: &Listener, settings: Settings) -> (PendingClient, Session) {
    let mut visitor = None;
    wait_until("somebody knocks", || {
        visitor = door.accept().expect("the door is open");
        visitor.is_some()
    });
    let visitor = visitor.expect("somebody has knocked");
    let mut hello = None;
    wait_until("it says what it is", || {
        hello = visitor.hello().ok();
        hello.is_some()
    });
    let hello = hello.expect("it was awaited");
    let region = Arc::new(SharedRegion::create().expect("there is memory"));
    let session = Session::start(visitor.peer(), region.clone(), settings, hello);
    visitor.send_region(&region).expect("it listens");
    (visitor, session.expect("there are threads"))
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
        let door = Listener::open(job.name(), settings.nid).expect("there is /dev/shm");
        let mut one: Worker = guest_of(&job, 1, "accelerated");
        assert_eq!(first_word(&mut one), "ready");
        let mut two = guest_of(&job, 2, "generic");
        let (_visitor, session) = let_in(&door, settings);
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
            one.say(words);
            let line = one.line();
            assert!(line.starts_with("Undeliverable"), "{words}: {line}");
        }
        wait_until("the session ends", || {
            session.end();
            session.is_over()
        });
    }
}
