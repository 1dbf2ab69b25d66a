//! Single messages against sums that can be done by hand, to the picosecond.

use lintel_sim_kernel::{Bytes, Duration};
use lintel_sim_seastar::profile::{Constant, PROFILES, XT5_2009};
use lintel_sim_seastar::workload::{Case, Way, ping_pong};
use lintel_sim_seastar::{Class, Mode, Profile};

fn sum(profile: &Profile, constants: &[Constant]) -> Duration {
    constants
        .iter()
        .map(|&constant| profile.time(constant))
        .sum()
}

/// One packet to a neighbour: read from memory, in, a hop, out. Where the next link
/// is faster, its head waits so that it doesn't run dry there.
fn wire(p: &Profile) -> Duration {
    let takes = |rate| p.bandwidth(rate).time_for(Bytes(p.packet.value));
    let (tx, link, rx) = (
        takes(p.tx_bandwidth),
        takes(p.link_bandwidth),
        takes(p.rx_bandwidth),
    );
    let waits = tx.saturating_sub(link) + link.saturating_sub(rx);
    sum(p, &[p.ht_read, p.port, p.hop, p.port]) + waits + rx
}

/// The firmware's work, a turn of its loop included.
fn firmware(p: &Profile, constant: Constant) -> Duration {
    sum(p, &[p.fw_turn, constant])
}

fn measured(profile: &Profile, mode: Mode, way: Way) -> Duration {
    ping_pong(&Case::new(*profile, mode), way, 0, 0).expect("the case runs")
}

/// From one kernel's trap to the other one's handler having served the header.
fn generic_way(p: &Profile) -> Duration {
    sum(p, &[p.ht_write, p.ht_write, p.interrupt_entry])
        + firmware(p, p.fw_transmit)
        + wire(p)
        + firmware(p, p.fw_header)
        + sum(p, &[p.host_message])
}

/// A process calls its kernel, which makes a message.
fn call(p: &Profile) -> Duration {
    sum(p, &[p.trap, p.library_call, p.host_message])
}

/// A start and an end are written by the handler, and read once that has returned.
fn pair_notified(p: &Profile) -> Duration {
    sum(p, &[p.host_event, p.event_get]) * 2 + sum(p, &[p.interrupt_exit])
}

#[test]
fn a_generic_put_without_payload_is_the_sum_of_its_stages() {
    for p in PROFILES {
        let matching = sum(p, &[p.host_entry]);
        let expected = call(p) + generic_way(p) + matching + pair_notified(p);
        assert_eq!(measured(p, Mode::Generic, Way::Put), expected, "{}", p.name);
    }
}

#[test]
fn a_generic_get_goes_both_ways_unless_its_target_s_interrupts_take_longer() {
    for p in PROFILES {
        // The start of a get is an event, too, and the answer a message of its own.
        let answer = sum(p, &[p.host_entry, p.host_event, p.host_message]);
        let there = call(p) + generic_way(p) + answer;
        let expected = there + generic_way(p) + pair_notified(p);
        let expected = expected.max(interrupts_of_a_get(p));
        assert_eq!(measured(p, Mode::Generic, Way::Get), expected, "{}", p.name);
    }
}

/// What the target's kernel does for a get: gets can't follow one another more quickly.
fn interrupts_of_a_get(p: &Profile) -> Duration {
    let each = sum(p, &[p.interrupt_entry, p.interrupt_exit]);
    let request = sum(
        p,
        &[p.host_message, p.host_entry, p.host_event, p.host_message],
    );
    let has_left = sum(p, &[p.host_message, p.host_event]);
    each * 2 + request + has_left
}

#[test]
fn an_accelerated_put_has_neither_trap_nor_interrupt() {
    for p in PROFILES {
        let out = firmware(p, p.fw_program) + firmware(p, p.fw_transmit) + wire(p);
        let matching = sum(p, &[p.nic_message, p.nic_entry, p.fw_turn]);
        let expected = sum(p, &[p.direct_call, p.ht_write, p.ht_write])
            + sum(p, &[p.nic_event, p.event_get]) * 2
            + out
            + firmware(p, p.fw_header)
            + matching;
        assert_eq!(
            measured(p, Mode::Accelerated, Way::Put),
            expected,
            "{}",
            p.name
        );
    }
}

#[test]
fn a_cci_message_without_payload_is_the_sum_of_its_stages() {
    for p in PROFILES {
        let library = sum(p, &[p.cci_send, p.cci_get_event]);
        let expected = library
            + sum(p, &[p.ht_write, p.ht_write, p.ht_write])
            + firmware(p, p.cci_fw_transmit)
            + wire(p)
            + firmware(p, p.cci_fw_header)
            + firmware(p, p.cci_fw_landed)
            + sum(p, &[p.cci_fw_event]);
        let way = Way::Cci(Class::Unreliable);
        assert_eq!(measured(p, Mode::Cci, way), expected, "{}", p.name);
    }
}

#[test]
fn payload_beyond_the_header_costs_an_interrupt() {
    for p in PROFILES {
        let case = Case::new(*p, Mode::Generic);
        let inline = p.inline_bytes.value;
        let time = |bytes| ping_pong(&case, Way::Put, bytes, 0).expect("the case runs");
        assert_eq!(time(0), time(inline), "{}", p.name);
        let step = time(inline + 1) - time(inline);
        assert!(
            step >= sum(p, &[p.interrupt_entry, p.interrupt_exit]),
            "{}: {step}",
            p.name
        );
    }
}

#[test]
fn a_transfer_behind_an_interrupt_s_end_shows_as_what_the_kernel_waits_for_memory() {
    for p in PROFILES {
        let case = Case::new(*p, Mode::Generic);
        let time = |bytes| ping_pong(&case, Way::Put, bytes, 0).expect("the case runs");
        let memory = |bytes| p.bandwidth(p.memory_bandwidth).time_for(Bytes(bytes));
        let (short, long) = (200, 1_000);
        assert_eq!(
            time(long) - time(short),
            memory(long) - memory(short),
            "{}",
            p.name
        );
    }
}

#[test]
fn a_copied_put_takes_its_copy_longer() {
    for p in PROFILES {
        let case = Case::new(*p, Mode::Generic);
        for bytes in [0, 8, 1_000, 8_192] {
            let time = |way| ping_pong(&case, way, bytes, 0).expect("the case runs");
            let longer = time(Way::CopiedPut) - time(Way::Put);
            assert_eq!(longer, p.copy(bytes), "{} {bytes}", p.name);
        }
    }
}

/// A long message's commands don't all fit into its source's queue (S4 II). Where that holds
/// one, the RX engine waits for a slow firmware at each page; it makes up for some of that, as
/// it is faster than what feeds it.
#[test]
fn the_rx_pipeline_stands_still_until_the_next_command_is_fed() {
    let (p, pages) = (&XT5_2009, 16);
    let time = |name, value, rx_queue| {
        let changed = p
            .with(name, value)
            .and_then(|p| p.with("rx_queue", rx_queue));
        let case = Case::new(changed.expect("there are both"), Mode::Generic);
        ping_pong(&case, Way::Put, pages * p.page.value, 0).expect("the case runs")
    };
    let usual = p.fw_feed.value;
    assert_eq!(time("fw_feed", usual, 7), time("fw_feed", usual, 1_000));
    let slow = 1_000;
    let longer = time("fw_feed", slow, 1) - time("fw_feed", slow, 1_000);
    let page = |rate| p.bandwidth(rate).time_for(Bytes(p.page.value));
    let made_up = page(p.tx_bandwidth) - page(p.rx_bandwidth);
    let feed = Duration::from_ns(1_000 * slow / 500) - made_up;
    assert!(longer >= feed * (pages - 2), "{longer} {feed}");
}

#[test]
fn each_entry_ahead_costs_what_an_entry_costs() {
    let p = &XT5_2009;
    for (mode, entry) in [
        (Mode::Generic, p.host_entry),
        (Mode::Accelerated, p.nic_entry),
    ] {
        let time = |ahead| ping_pong(&Case::new(*p, mode), Way::Put, 0, ahead).expect("it runs");
        assert_eq!(time(100) - time(0), p.time(entry) * 100, "{mode:?}");
    }
}
