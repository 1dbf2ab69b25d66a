//! What interfaces of Portals 3.3 and endpoints of CCI answer to `lintel info --queues`.
#![forbid(unsafe_code)]

mod rig;

use std::net::Ipv4Addr;

use lintel_cci_endpoint::{Device, Endpoint, Transport, devices};
use portals33::{Entry, EntrySpec, EventQueue, Interface, Options, Portals, Position};
use rig::Running;
use serde_json::Value;

/// What this process answers, by an interface or an endpoint that `is_meant`.
fn answer(is_meant: impl Fn(&Value) -> bool) -> Value {
    let all = Running::start(&["info", "--queues", "--json"]).json();
    let mut all = all.as_array().expect("processes").iter();
    let found = all
        .find(|answer| answer["os_process"] == std::process::id() && is_meant(&answer["snapshot"]));
    found
        .unwrap_or_else(|| panic!("it answers: {all:?}"))
        .clone()
}

#[test]
fn an_interface_of_portals_3_answers_with_its_lists_and_queues() {
    let portals = Portals::init().expect("Portals can be used");
    let interface = Interface::open(&portals, Options::default()).expect("one opens");
    let queue = EventQueue::alloc(&interface, 8).expect("one is free");
    let spec = |match_bits| EntrySpec {
        match_bits,
        ..EntrySpec::default()
    };
    let attach = |bits| Entry::attach(&interface, 4, Position::After, spec(bits));
    let last = attach(7).expect("there is room");
    let first = last
        .insert(Position::Before, spec(6))
        .expect("there is room");
    let answer = answer(|snapshot| snapshot["interfaces"][0]["portals3"] == true);
    let seen = &answer["snapshot"]["interfaces"][0];
    let list = &seen["portals"][0];
    assert_eq!((&list["index"], &list["priority"]), (&4.into(), &2.into()));
    let bits = [0, 1].map(|at| list["entries"][at]["match_bits"].as_u64());
    assert_eq!(bits, [Some(6), Some(7)], "in the list's order");
    assert_eq!(seen["queues"][0]["fill"], 0);
    let text = Running::start(&["info", "--queues"]).text();
    assert!(text.contains("Portals 3.3 interface: 0 requests"), "{text}");
    assert!(text.contains("pt 4: 2 match entries"), "{text}");
    drop((first, last, queue));
}

#[test]
fn an_endpoint_of_cci_answers_over_each_transport() {
    let sm = devices()
        .into_iter()
        .find(|it| it.transport == Transport::Sm);
    let sock = Device::at_address(Ipv4Addr::LOCALHOST);
    for device in [sm.expect("there is always shared memory"), sock] {
        let endpoint = Endpoint::open(&device, None, false).expect("the system has room");
        let answer = answer(|snapshot| snapshot["endpoint"].is_object());
        let seen = &answer["snapshot"]["endpoint"];
        assert_eq!(seen["connections"], 0, "{answer}");
        let text = Running::start(&["info", "--queues"]).text();
        assert!(text.contains("CCI endpoint: 0 connections"), "{text}");
        drop(endpoint);
    }
}
