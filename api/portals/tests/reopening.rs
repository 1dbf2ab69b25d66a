//! Alone in its process, since it needs that nothing else is open.

use portals4::*;

fn open(max_mds: i32) -> Interface {
    let portals = Portals::init().expect("the library starts");
    let limits = Limits {
        max_mds,
        ..Limits::DEFAULT
    };
    let options = Options {
        limits: Some(limits),
        ..Options::default()
    };
    Interface::open(&portals, options).expect("the interface opens")
}

#[test]
fn an_interface_closes_with_the_last_of_what_was_made_on_it() {
    let interface = open(7);
    let queue = EventQueue::alloc(&interface, 4).expect("there is room for a queue");
    drop(interface);
    assert_eq!(open(9).limits().max_mds, 7, "the queue keeps it open");
    drop(queue);
    assert_eq!(open(9).limits().max_mds, 9);
}
