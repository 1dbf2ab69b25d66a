//! What arrives: requests, their bytes, and responses.

use super::{NODES, World, full};
use crate::rig::{Recorder, UID, process};
use lintel_engine4::{Landing, Step};
use lintel_memory::{Ghost, Pieces};
use lintel_types::{AckRequest, NiFail};
use lintel_wire::{Acknowledgements, Request, Response, Verb};

impl World {
    /// Requests mostly arrive in order.
    pub(super) fn arrive(&mut self) {
        if self.on_the_way.is_empty() {
            return;
        }
        let first = self.random.below(4) > 0;
        let index = if first {
            0
        } else {
            self.pick(self.on_the_way.len())
        };
        let (from, sent) = self.on_the_way.remove(index);
        let Some(at) = (0..NODES).find(|at| process(*at) == sent.to) else {
            return;
        };
        let uid = self.random.pick(&[UID, UID, UID, UID + 1]);
        if self.random.once_in(2) && self.deliver(at, from, uid, &sent.request) {
            return;
        }
        let is_put = sent.request.verb == Verb::Put;
        if is_put && self.random.once_in(2) && self.repeat_landing(at, from, uid, &sent.request) {
            return;
        }
        let both = &mut self.both[at];
        let (interface, host) = (&mut both.node.interface, &mut both.node.host);
        let engine = interface.on_request(process(from), uid, &sent.request, host);
        let model = both.model.on_request(process(from), uid, &sent.request);
        match (engine, model) {
            (Landing::Refused(response), Err(wanted)) => {
                self.same(response, wanted, "a refusal");
                self.responses
                    .extend(response.map(|response| (from, response)));
            }
            (Landing::Accepted(pieces, landed), Ok((wanted, arrival))) => {
                self.same(full(pieces.as_slice()), wanted, "where a message lands");
                self.same(landed.mlength(), arrival.mlength, "how much of it");
                self.landing.push((at, from, landed, arrival));
                if self.random.once_in(2) {
                    self.land_at(self.landing.len() - 1);
                }
            }
            (engine, model) => panic!("{engine:?} but {model:?}; LINTEL_SEED={}", self.seed),
        }
    }

    /// A request arrives and lands in one step; false if it takes three.
    fn deliver(&mut self, at: usize, from: usize, uid: u32, request: &Request) -> bool {
        let fail = self.random.pick(&[NiFail::Ok, NiFail::Ok, NiFail::Segv]);
        let both = &mut self.both[at];
        let (interface, host) = (&mut both.node.interface, &mut both.node.host);
        let mut step = None;
        let act = |_: &mut Recorder, taken: Step<Ghost>| {
            step = Some(taken);
            fail
        };
        let Some(delivered) = interface.deliver(process(from), uid, request, act, host) else {
            return false;
        };
        let Ok((wanted, arrival)) = both.model.on_request(process(from), uid, request) else {
            panic!("{request:?} is delivered; LINTEL_SEED={}", self.seed);
        };
        let if_ok = both.model.response(&arrival, NiFail::Ok);
        let response = both.model.response(&arrival, fail);
        both.model.on_landed(&arrival, fail);
        let step = step.expect("what is delivered was acted upon");
        self.same(full(&[step.span]), wanted, "where a request lands");
        self.same(
            if_ok.is_none_or(|wanted| wanted == step.response),
            true,
            "its response, if all is well",
        );
        self.same(delivered.response, response, "a response");
        let by_token = response.is_some_and(|response| is_by_token(request, &response));
        self.same(delivered.is_by_token, by_token, "what its token says");
        let responses = response.map(|response| (from, response));
        self.responses.extend(responses);
        self.met.insert(format!("one step: {:?}", request.verb));
        true
    }

    /// A put arrives and lands like an earlier one; false if it doesn't.
    fn repeat_landing(&mut self, at: usize, from: usize, uid: u32, put: &Request) -> bool {
        let both = &mut self.both[at];
        let sender = (process(from), uid);
        let landed = both.node.repeat_landing(&mut both.landings, sender, put);
        let Some(place) = landed else {
            return false;
        };
        let Ok((wanted, arrival)) = both.model.on_request(process(from), uid, put) else {
            panic!("{put:?} has landed; LINTEL_SEED={}", self.seed);
        };
        let response = both.model.response(&arrival, NiFail::Ok);
        both.model.on_landed(&arrival, NiFail::Ok);
        self.same(full(&[place]), wanted, "where a put lands like others");
        self.same(None, response, "no response");
        self.met.insert("a put like an earlier one".to_owned());
        true
    }

    pub(super) fn land(&mut self) {
        if !self.landing.is_empty() {
            let index = self.pick(self.landing.len());
            self.land_at(index);
        }
    }

    fn land_at(&mut self, index: usize) {
        let (at, from, landed, arrival) = self.landing.remove(index);
        let fail = self
            .random
            .pick(&[NiFail::Ok, NiFail::Ok, NiFail::Ok, NiFail::Segv]);
        let both = &mut self.both[at];
        let (response, wanted) = (landed.response(fail), both.model.response(&arrival, fail));
        both.node.on_landed(landed, fail);
        both.model.on_landed(&arrival, fail);
        self.same(response, wanted, "a response");
        self.responses
            .extend(response.map(|response| (from, response)));
    }

    /// Compares a response with what an acknowledgement by its token alone says.
    fn compare_by_token(&mut self, at: usize, response: &Response) {
        let interface = &self.both[at].node.interface;
        let Some(by_token) = interface.response_by_token(response.token) else {
            return;
        };
        let placed = response.placed;
        if (Response { placed, ..by_token }) == *response {
            let met = "an acknowledgement by its token";
            self.met.insert(met.to_owned());
        }
        let is_within = response.mlength <= by_token.mlength;
        self.same(is_within, true, "no more is moved than was asked for");
    }

    /// A response arrives, now and then twice.
    pub(super) fn respond(&mut self) {
        if self.responses.is_empty() {
            return;
        }
        let index = self.pick(self.responses.len());
        let again = self.random.once_in(8);
        let (at, mut response) = if again {
            self.responses[index]
        } else {
            self.responses.remove(index)
        };
        response.placed = self.random.once_in(3);
        let in_one_step = self.random.once_in(2);
        self.compare_by_token(at, &response);
        let both = &mut self.both[at];
        let from = both.node.answerer(&response);
        let (interface, host) = (&mut both.node.interface, &mut both.node.host);
        if in_one_step && interface.deliver_acknowledgement(from, &response, host) {
            let replied = both.model.on_response(&response);
            return self.same(replied, None, "an acknowledgement");
        }
        if in_one_step && self.deliver_reply(at, &response) {
            return;
        }
        let both = &mut self.both[at];
        let engine = both.node.on_response(&response);
        let model = both.model.on_response(&response);
        let pieces = engine
            .as_ref()
            .map(|(pieces, _): &(Pieces<Ghost>, _)| full(pieces.as_slice()));
        self.same(pieces, model, "where a reply goes");
        self.replies
            .extend(engine.map(|(_, pending)| (at, pending, response)));
    }

    /// A reply arrives, and its bytes with it; false if it takes two steps.
    fn deliver_reply(&mut self, at: usize, response: &Response) -> bool {
        let fail = self.random.pick(&[NiFail::Ok, NiFail::Ok, NiFail::Segv]);
        let both = &mut self.both[at];
        let from = both.node.answerer(response);
        let (interface, host) = (&mut both.node.interface, &mut both.node.host);
        let mut place = None;
        let fill = |_: &mut Recorder, span| {
            place = Some(span);
            fail
        };
        if !interface.deliver_reply(from, response, fill, host) {
            return false;
        }
        let wanted = both.model.on_response(response);
        both.model.finish(response, fail);
        let place = place.map(|span| full(&[span]));
        self.same(place, wanted, "where a reply goes at once");
        self.met.insert("one step: reply".to_owned());
        true
    }

    pub(super) fn fill(&mut self) {
        if self.replies.is_empty() {
            return;
        }
        let index = self.pick(self.replies.len());
        let (at, pending, response) = self.replies.remove(index);
        let fail = self.random.pick(&[NiFail::Ok, NiFail::Ok, NiFail::Segv]);
        let both = &mut self.both[at];
        both.node
            .interface
            .on_filled(pending, fail, &mut both.node.host);
        both.model.finish(&response, fail);
    }
}

/// Whether all that a response says follows from its request.
fn is_by_token(request: &Request, response: &Response) -> bool {
    let whole = Response {
        offset: request.remote_offset,
        ..Acknowledgements::response(request.interface, request.token, request.length)
    };
    let reports_offset = request.ack == AckRequest::Full && request.remote_offset != 0;
    request.verb == Verb::Put && *response == whole && !reports_offset
}
