//! What lands, or ends an operation, in one step: most messages are short, have their bytes with
//! them, and need nothing kept between the engine's decision and their completion. All else is left
//! to `landing`.

use crate::core::Core;
use crate::effects::Effects;
use crate::exchange::{Exchange, SHORT_EXCHANGE};
use crate::landing::reply;
use crate::mover::{Extent, Mover};
use crate::owner::Owner;
use lintel_claim::Claim;
use lintel_engine4::Step;
use lintel_memory::Pieces;
use lintel_nal::{Origin, Payload};
use lintel_types::NiFail;
use lintel_wire::{Acknowledgements, Message, Request, Response, Verb, Words};

impl<O: Owner> Core<O> {
    /// Lands a put whose bytes came with it in one step; false if it takes more.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, origin: Origin, put: &Request, body: Claim) -> bool {
        let Some((interface, mut effects)) = self.interface(put.interface) else {
            return false;
        };
        let (owner, length) = (effects.owner, put.length);
        let copy = |_: &mut Effects<'_, O>, step: Step<O::Span>| match step.is_accessible {
            true => deposit::<O>(owner, body, step.span, (length, true)),
            false => deposit_unsure::<O>(owner, body, step.span, length),
        };
        let delivered = interface.deliver(origin.process, origin.uid, put, copy, &mut effects);
        match delivered {
            Some(delivered) => {
                if delivered.is_by_token {
                    self.transports
                        .gather(origin.process, put.interface, put.token);
                } else if let Some(response) = delivered.response {
                    self.transports.respond(origin.process, &response);
                }
                true
            }
            None => false,
        }
    }

    /// Handles a get, an atomic, or the reply to either in one step; false if it takes more.
    #[inline(never)]
    pub(crate) fn deliver_exchange(&mut self, origin: Origin, words: &Words, body: Claim) -> bool {
        if !touches::<O>() {
            return false;
        }
        let message = Message::parse(words);
        // What follows from this one comes behind them.
        self.transports.send_acknowledgements();
        match message {
            Ok(Message::Request(request)) => match request.verb {
                Verb::Get => self.deliver_get(origin, &request),
                _ => self.deliver_atomic(origin, &request, body),
            },
            Ok(Message::Response(response)) => self.deliver_reply(origin, &response, body),
            _ => false,
        }
    }

    #[inline(always)]
    fn deliver_reply(&mut self, origin: Origin, response: &Response, body: Claim) -> bool {
        let Some((interface, mut effects)) = self.interface(response.interface) else {
            return false;
        };
        let fill = |effects: &mut Effects<'_, O>, span| {
            O::Mover::deposit_reply(effects.owner, body, &Pieces::One(span))
        };
        interface.deliver_reply(origin.process, response, fill, &mut effects)
    }

    #[inline(always)]
    fn deliver_get(&mut self, origin: Origin, get: &Request) -> bool {
        let Some((interface, mut effects)) = self.interface(get.interface) else {
            return false;
        };
        // Longer ones may be read in place: see `reply_lent`.
        let is_copied = get.length <= interface.limits().max_war_ordered_size && get.token != 0;
        if !is_copied {
            return false;
        }
        let delivered = interface.deliver(
            origin.process,
            origin.uid,
            get,
            #[inline(always)]
            |effects, step| {
                if let Some(pieces) = O::Mover::as_claims(&[step.span]) {
                    reply(effects.transports, origin, &step.response, pieces);
                }
                NiFail::Ok
            },
            &mut effects,
        );
        delivered.is_some()
    }

    #[inline(always)]
    fn deliver_atomic(&mut self, origin: Origin, request: &Request, operands: Claim) -> bool {
        let is_coherent = self.is_coherent(request);
        let Ok(exchange) = Exchange::new(request, request.length, Payload::Inline(operands)) else {
            return false;
        };
        let Some((interface, mut effects)) = self.interface(request.interface) else {
            return false;
        };
        if !exchange.is_short() {
            return false;
        }
        let delivered = interface.deliver(
            origin.process,
            origin.uid,
            request,
            #[inline(always)]
            |effects, step| {
                let (mut small, mut large) = ([0; SHORT_EXCHANGE], Vec::new());
                if let Some(target) = O::Mover::as_claims(&[step.span]) {
                    let old = exchange.perform(target, is_coherent, &mut small, &mut large);
                    if step.response.reply && request.token != 0 {
                        let old = effects.exchange.reply_of(old);
                        reply(effects.transports, origin, &step.response, &[old]);
                    }
                }
                NiFail::Ok
            },
            &mut effects,
        );
        let Some(delivered) = delivered else {
            return false;
        };
        if let Some(response) = delivered.response.filter(|response| !response.reply) {
            self.transports.respond(origin.process, &response);
        }
        true
    }

    /// Ends an operation that was acknowledged in one step; false if it takes more.
    #[inline(never)]
    pub(crate) fn deliver_acknowledgement(&mut self, origin: Origin, words: &Words) -> bool {
        let Some(response) = Response::parse_acknowledgement(words) else {
            return false;
        };
        let opened = self.interface(response.interface);
        opened.is_some_and(|(interface, mut effects)| {
            interface.deliver_acknowledgement(origin.process, &response, &mut effects)
        })
    }

    /// Ends the operations that were acknowledged together; false if the words are none of these.
    #[inline(always)]
    pub(crate) fn deliver_acknowledgements(&mut self, origin: Origin, words: &Words) -> bool {
        let parsed = Acknowledgements::parse(words);
        parsed.is_some_and(|all| {
            self.on_acknowledgements(origin, &all);
            true
        })
    }

    #[inline(never)]
    pub(crate) fn on_acknowledgements(&mut self, origin: Origin, all: &Acknowledgements) {
        for token in all.tokens() {
            let Some((interface, mut effects)) = self.interface(all.interface()) else {
                break;
            };
            if interface.deliver_token(origin.process, token, &mut effects) {
                continue;
            }
            if let Some(response) = interface.response_by_token(token) {
                self.on_response(origin, &response, Payload::Placed);
            }
        }
    }
}

/// Whether memory of the owner is touched here, and not copied by the system.
fn touches<O: Owner>() -> bool {
    O::Mover::as_claims(&[]).is_some()
}

/// Moves a put's bytes to a span of an entry.
#[inline(always)]
fn deposit<O: Owner>(
    owner: &O,
    body: Claim,
    span: O::Span,
    (length, is_accessible): (u64, bool),
) -> NiFail {
    let extent = Extent {
        length,
        is_accessible,
    };
    O::Mover::deposit(owner, body, &Pieces::One(span), extent)
}

/// As [`deposit`], if the memory may not be there.
#[cold]
#[inline(never)]
fn deposit_unsure<O: Owner>(owner: &O, body: Claim, span: O::Span, length: u64) -> NiFail {
    deposit::<O>(owner, body, span, (length, false))
}
