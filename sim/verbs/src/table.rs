//! Published figures beside simulated ones. The model is calibrated, not tested, by them:
//! five constants were chosen for seven numbers, and the other two follow.

use lintel_sim_kernel::Bytes;

use crate::Transport;
use crate::measure::{Pattern, bandwidth, latency};

/// A published figure, and the simulated one.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The publication and the place in it.
    pub source: &'static str,
    /// The quantity that was measured.
    pub what: &'static str,
    /// The unit of both values.
    pub unit: &'static str,
    /// What the document says.
    pub published: f64,
    /// What the simulation says.
    pub simulated: f64,
    /// Whether a constant was chosen to make it come out.
    pub fitted: bool,
    /// Why it comes out, if no constant was chosen for it; else what the fit is worth.
    pub why: &'static str,
}

/// The paper's figures, each with what the model gives.
pub fn table() -> Vec<Row> {
    let row = |what, unit, published, simulated, fitted| Row {
        source: "MVAPICH with XRC, 2007",
        what,
        unit,
        published,
        simulated,
        fitted,
        why: match (fitted, what) {
            (false, _) => "equals RC by construction: the same bus limits both",
            (true, "many-to-many, XRC ahead of RC") => {
                "by the number of contexts that an adapter holds, an assumption of the model: no \
                 document names the cause; what a miss costs decides as much"
            }
            (true, _) => "",
        },
    };
    let short = |transport| latency(transport, Bytes(1)).as_ps() as f64 / 1e6;
    let long = |transport, pattern| bandwidth(transport, pattern, LONG).megabytes_per_second;
    let many = |transport| long(transport, Pattern::ManyToMany(8));
    let (one, both) = (Pattern::Pairs(1), Pattern::BothWays);
    let (rc, xrc) = (Transport::Rc, Transport::Xrc);
    vec![
        row("latency, RC", "µs", 1.49, short(rc), true),
        row("latency, XRC", "µs", 1.54, short(xrc), true),
        row("uni-directional, RC", "MB/s", 1402.0, long(rc, one), true),
        row(
            "uni-directional, XRC",
            "MB/s",
            1402.0,
            long(xrc, one),
            false,
        ),
        row("bi-directional, RC", "MB/s", 2722.0, long(rc, both), true),
        row(
            "bi-directional, XRC",
            "MB/s",
            2722.0,
            long(xrc, both),
            false,
        ),
        row(
            "many-to-many, XRC ahead of RC",
            "MB/s",
            50.0,
            many(xrc) - many(rc),
            true,
        ),
    ]
}

/// The message that bandwidths are measured with.
const LONG: Bytes = Bytes(256 << 10);
