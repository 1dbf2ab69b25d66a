//! Two ranks put 8 bytes to each other in turns and print the time of a round trip:
//! `yod -n 2 target/release/examples/portals3_ping_pong`.

use lintel_pmi::client::Client;
use portals33::*;
use std::time::Instant;

const PORTAL: u32 = 4;
const ROUNDS: u32 = 1000;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let Ok(ranks) = Ranks::from_env() else {
        return Err("start two ranks: yod -n 2 portals3_ping_pong".into());
    };
    let [first, second] = *ranks.processes() else {
        return Err("this takes two ranks: yod -n 2 portals3_ping_pong".into());
    };
    let peer = if ranks.rank() == 0 { second } else { first };
    let portals = Portals::init()?;
    let interface = Interface::open(&portals, Options::of(&ranks))?;
    let arrivals = EventQueue::alloc(&interface, 16)?;
    let entry = Entry::attach(&interface, PORTAL, Position::After, EntrySpec::default())?;
    let _inbox = MemoryDescriptor::attach(
        &entry,
        DescriptorSpec {
            memory: Memory::from(&Region::new(8)),
            options: MdOptions::OP_PUT | MdOptions::MANAGE_REMOTE | MdOptions::EVENT_START_DISABLE,
            queue: Some(arrivals.clone()),
            ..DescriptorSpec::default()
        },
    )?;
    let source = MemoryDescriptor::bind(
        &interface,
        DescriptorSpec {
            memory: Memory::from(&Region::new(8)),
            ..DescriptorSpec::default()
        },
    )?;
    let put = Put {
        target: Target::new(peer, PORTAL),
        ..Put::default()
    };
    // A message is dropped while its target has no entry.
    let mut launcher = Client::from_env()?.ok_or("no launcher")?;
    launcher.barrier()?;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        if ranks.rank() == 0 {
            source.put(put)?;
            arrivals.wait()?;
        } else {
            arrivals.wait()?;
            source.put(put)?;
        }
    }
    if ranks.rank() == 0 {
        println!("round trip: {:?}", start.elapsed() / ROUNDS);
    }
    launcher.finalize()?;
    Ok(())
}
