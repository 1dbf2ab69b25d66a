//! Two processes send 8 bytes to each other in turns, and the first prints the time of a round
//! trip. It starts the second one itself: `target/release/examples/cci_ping_pong`.

use cci2::*;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

type Outcome<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const ROUNDS: u32 = 10_000;
/// Longer than the other process takes to start, or to answer.
const SOON: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1) {
        Some(uri) => answer(&uri),
        None => ask(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cci_ping_pong: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The first process: starts the second one, which connects, and measures.
fn ask() -> Outcome<()> {
    let endpoint = open()?;
    let program = std::env::current_exe()?;
    let mut second = Command::new(program).arg(endpoint.uri()).spawn()?;
    let connection = accept(&endpoint)?;
    let start = Instant::now();
    for round in 0..ROUNDS {
        connection.send(&u64::from(round).to_ne_bytes(), Completion::Silent)?;
        receive(&endpoint)?;
    }
    println!("round trip: {:?}", start.elapsed() / ROUNDS);
    match second.wait()?.success() {
        true => Ok(()),
        false => Err("the second process has failed".into()),
    }
}

/// The second process: sends back what it receives.
fn answer(uri: &str) -> Outcome<()> {
    let endpoint = open()?;
    endpoint.connect(uri, Connect::default())?;
    let Some(Event::Connected { result, .. }) = endpoint.wait(SOON)? else {
        return Err("the first process doesn't answer".into());
    };
    let connection = result?;
    for round in 0..ROUNDS {
        let bytes = receive(&endpoint)?;
        match round + 1 < ROUNDS {
            true => connection.send(&bytes, Completion::Silent)?,
            // It has arrived before this process ends.
            false => connection.send(&bytes, Completion::Blocking)?,
        }
    }
    Ok(())
}

fn open() -> Outcome<Endpoint> {
    let device = devices().into_iter().next().ok_or("there is no device")?;
    Ok(Endpoint::open(&device)?)
}

fn accept(endpoint: &Endpoint) -> Outcome<Connection> {
    loop {
        match endpoint.wait(SOON)? {
            Some(Event::Request(request)) => request.accept(0)?,
            Some(Event::Accepted { result, .. }) => return Ok(result?),
            other => return Err(format!("expected a client, not {other:?}").into()),
        }
    }
}

fn receive(endpoint: &Endpoint) -> Outcome<[u8; 8]> {
    match endpoint.wait(SOON)? {
        Some(Event::Received { message, .. }) => {
            let mut bytes = [0; 8];
            message.read(&mut bytes);
            Ok(bytes)
        }
        other => Err(format!("expected a message, not {other:?}").into()),
    }
}
