//! What an operating system takes from a core.
//!
//! Noise comes once an interval and stops all work of the core for a while. Its
//! places are a function of the stream alone, not of what the core does: a second
//! query gets the same answer.

use std::fmt;

use lintel_sim_kernel::{Duration, SimTime, Stream};

/// Where in its interval noise comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// At one place, drawn once: a clock's tick.
    Periodic,
    /// At a place drawn anew for each interval.
    Scattered,
}

/// Noise of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoiseParameters {
    /// How long it stops a core.
    pub length: Duration,
    /// Once in so long.
    pub interval: Duration,
    /// At which place of the interval.
    pub placement: Placement,
}

/// What is wrong with parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError(pub(crate) String);

/// The noise of one core.
#[derive(Clone, Debug)]
pub struct Noise(Option<Source>);

#[derive(Clone, Debug)]
struct Source {
    parameters: NoiseParameters,
    stream: Stream,
    /// When the current or next noise ends; those before are over. It may have
    /// begun before time did.
    end: SimTime,
    /// The start of the interval after that noise's.
    next_interval: SimTime,
}

impl Noise {
    /// A core that nothing disturbs.
    pub const NONE: Noise = Noise(None);

    /// Noise drawn from a stream of its own.
    pub fn new(parameters: NoiseParameters, stream: Stream) -> Result<Self, ConfigError> {
        let NoiseParameters {
            length, interval, ..
        } = parameters;
        if length >= interval {
            let text = format!("noise of {length} each {interval} leaves no time for work");
            return Err(ConfigError(text));
        }
        Ok(Noise(Some(Source::new(parameters, stream))))
    }

    /// When work is done that begins at `start` and takes `work` undisturbed.
    ///
    /// Calls may not go back in time: `start` is never before what an earlier
    /// call gave.
    pub fn stretch(&mut self, start: SimTime, work: Duration) -> SimTime {
        match &mut self.0 {
            None => start + work,
            Some(source) => source.stretch(start, work),
        }
    }

    /// Takes noise that goes on at `now` as over: for an experiment that begins
    /// with undisturbed cores. Call it in the order of time with
    /// [`Noise::stretch`].
    pub fn end_by(&mut self, now: SimTime) {
        if let Some(source) = &mut self.0 {
            source.skip_until(now);
            while source.begin() < now {
                source.advance();
            }
        }
    }
}

impl Source {
    /// Time starts anywhere in an interval, so that it starts like any other time.
    fn new(parameters: NoiseParameters, mut stream: Stream) -> Self {
        let NoiseParameters {
            length, interval, ..
        } = parameters;
        let before = stream.below_duration(interval);
        let mut source = Source {
            parameters,
            stream,
            end: SimTime::START,
            next_interval: SimTime::START + (interval - before),
        };
        match parameters.placement {
            Placement::Periodic => source.end += before,
            Placement::Scattered => {
                let end = source.draw() + length;
                source.end += end.saturating_sub(before);
            }
        }
        source
    }

    fn begin(&self) -> SimTime {
        let end = self.end.since(SimTime::START);
        SimTime::START + end.saturating_sub(self.parameters.length)
    }

    fn stretch(&mut self, start: SimTime, work: Duration) -> SimTime {
        self.skip_until(start);
        // Work that would begin within noise begins at its end.
        let mut done = start + work;
        if self.begin() <= start {
            done = self.end + work;
            self.advance();
        }
        while self.begin() < done {
            done += self.parameters.length;
            self.advance();
        }
        done
    }

    /// Passes over noise that is over by `start`.
    fn skip_until(&mut self, start: SimTime) {
        let NoiseParameters {
            interval,
            placement,
            ..
        } = self.parameters;
        if placement == Placement::Periodic && self.end <= start {
            let over = start.since(self.end).as_ps() / interval.as_ps();
            self.end += interval * over;
        }
        while self.end <= start {
            self.advance();
        }
    }

    /// On to the next noise.
    fn advance(&mut self) {
        let NoiseParameters {
            length,
            interval,
            placement,
        } = self.parameters;
        match placement {
            Placement::Periodic => self.end += interval,
            Placement::Scattered => {
                self.end = self.next_interval + self.draw() + length;
                self.next_interval += interval;
            }
        }
    }

    /// Where in its interval noise begins. It ends within it, so that no two meet.
    fn draw(&mut self) -> Duration {
        let NoiseParameters {
            length, interval, ..
        } = self.parameters;
        self.stream.below_duration(interval - length)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
