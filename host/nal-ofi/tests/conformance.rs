//! The suite that every NAL passes, over providers that any machine has.

use lintel_nal::{Loopback, Nal};
use lintel_nal_conformance::{Member, suite};
use lintel_nal_ofi::{Config, OfiNal, OpenError};
use lintel_types::ProcessId;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const NID: u32 = 0x7f00_0001;

fn config<'a>(provider: &str, job: &'a str) -> Config<'a> {
    Config {
        nid: NID,
        port: None,
        provider: Some(provider.to_owned()),
        key: [0x5a; 32],
        uid: 1000,
        model_is_xrc: false,
        // Short, for a peer that was dropped unseen is told lost only then.
        peer_timeout: Duration::from_secs(1),
        job,
        log: |words| eprintln!("{words}"),
    }
}

/// Why there is nothing to test here, if there isn't.
fn reason_to_skip(provider: &str) -> Option<String> {
    match OfiNal::open(config(provider, "probe")) {
        Ok(_) => None,
        Err(error @ (OpenError::NoLibrary(_) | OpenError::TooOld(..))) => Some(error.to_string()),
        Err(error @ OpenError::NoProvider { .. }) => Some(error.to_string()),
        Err(error) => panic!("{provider}: {error}"),
    }
}

/// A network of its own for every call; without the provider one of a single process
/// that needs none, so that nothing is tested, which is said aloud.
fn network(provider: &str, members: usize) -> Vec<Member<Box<dyn Nal>>> {
    static NETWORKS: AtomicU32 = AtomicU32::new(0);
    if let Some(reason) = reason_to_skip(provider) {
        eprintln!("SKIPPED, nothing was tested over {provider}: {reason}");
        let name = ProcessId::new(NID, 1);
        let nal = Box::new(Loopback::new(name, 0));
        return vec![Member { name, nal }];
    }
    let count = NETWORKS.fetch_add(1, Ordering::Relaxed);
    let job = format!("conformance-{}-{count}", std::process::id());
    let open = |_| {
        let nal = OfiNal::open(config(provider, &job)).expect("there is that provider");
        if provider == "shm" {
            nal.stay_open();
            remove_segments();
        }
        Member {
            name: nal.process(),
            nal: Box::new(nal) as Box<dyn Nal>,
        }
    };
    (0..members).map(open).collect()
}

/// Removes the segments of this process's endpoints, which stay open and would stay
/// behind; within a process they are found without their files.
fn remove_segments() {
    let prefix = format!("{}:", std::process::id());
    let folder = std::fs::read_dir("/dev/shm").expect("provider shm works there");
    for entry in folder.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

mod tcp {
    use super::*;
    suite!(|members| network("tcp;ofi_rxm", members));
}

mod udp {
    use super::*;
    suite!(|members| network("udp;ofi_rxd", members));
}

mod shm {
    use super::*;
    suite!(|members| network("shm", members));
}
