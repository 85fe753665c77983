//! What receivers ask: messages under locks, workflows whole, and messages hidden for a while.

use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::step::Step;
use crate::engine::rules::verb::AnswerTypes;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::VerbRuling;
use crate::engine::rules::verb::WorkVerb;
use crate::engine::rules::verbs::AcceptWorkflow;
use crate::engine::rules::verbs::CloseWorkflow;
use crate::engine::rules::verbs::Command;
use crate::engine::rules::verbs::Receive;
use crate::engine::rules::verbs::ReceiveDeadLetters;
use crate::engine::rules::verbs::ReceiveDeferred;
use crate::engine::rules::verbs::ReceiveDeferredDeadLetters;
use crate::engine::rules::verbs::ReceiveDeferredFromWorkflow;
use crate::engine::rules::verbs::ReceiveFromWorkflow;
use crate::engine::rules::verbs::ReceiveHidden;
use crate::engine::rules::verbs::ReceiveRun;
use crate::engine::rules::verbs::Settle;
use crate::engine::rules::waits_for::WaitsFor;
use crate::id::QueueName;

/// Makes a verb whose answer hands messages out under locks.
macro_rules! receives {
    ($($verb:ident: |$request:ident, $step:ident| $run:expr, from $from:expr;)*) => {
        $(impl EngineVerb for $verb {
            const HANDS_OUT: bool = true;

            fn run(self, $step: &mut Step<'_>) -> VerbRuling<$verb> {
                let $request = self;
                $run
            }

            fn receives_from(&self) -> Option<&QueueName> {
                let from: fn(&$verb) -> Option<&QueueName> = $from;
                from(self)
            }

            fn give_back(&self, done: <$verb as AnswerTypes>::Done, post: &mut dyn FnMut(Command)) {
                give_back(&self.queue, &done, post);
            }
        })*
    };
}

receives! {
    Receive: |verb, step| step.receive(&verb.queue, verb.max, verb.token),
        from |verb| Some(&verb.queue);
    ReceiveRun: |verb, step| step.receive_run(&verb.queue, verb.max, verb.token),
        from |verb| Some(&verb.queue);
    ReceiveDeferred: |verb, step| step.receive_deferred(&verb.queue, &verb.sequences, verb.token),
        from |_| None;
    ReceiveDeadLetters: |verb, step| step.receive_dead_letters(&verb.queue, verb.max, verb.token),
        from |verb| Some(&verb.queue);
    ReceiveDeferredDeadLetters: |verb, step| {
            step.receive_deferred_dead_letters(&verb.queue, &verb.sequences, verb.token)
        },
        from |_| None;
    ReceiveFromWorkflow: |verb, step| step.receive_from_workflow(&verb.queue, verb.token, verb.max),
        from |_| None;
    ReceiveDeferredFromWorkflow: |verb, step| {
            step.receive_deferred_from_workflow(&verb.queue, verb.token, &verb.sequences)
        },
        from |_| None;
}

impl EngineVerb for AcceptWorkflow {
    const HANDS_OUT: bool = true;

    fn run(self, step: &mut Step<'_>) -> VerbRuling<AcceptWorkflow> {
        step.accept_workflow(&self.queue, self.workflow, self.token)
    }

    fn receives_from(&self) -> Option<&QueueName> {
        Some(&self.queue)
    }

    fn give_back(&self, done: <AcceptWorkflow as AnswerTypes>::Done, post: &mut dyn FnMut(Command)) {
        if let Some(grant) = done {
            post(CloseWorkflow { queue: self.queue.clone(), token: grant.token }.into());
        }
    }
}

/// Without a lock there is nothing to give back: what nobody has heard of is offered again at its instant. On a cluster, whoever
/// asks several partitions and takes what one has offers what the others have hidden (`cluster/receiving.rs`).
impl EngineVerb for ReceiveHidden {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<ReceiveHidden> {
        step.receive_hidden(&self.queue, self.max, self.lasts)
    }

    fn receives_from(&self) -> Option<&QueueName> {
        Some(&self.queue)
    }
}

/// Says what a verb waits for that found no work.
macro_rules! waits {
    ($($verb:ident: |$request:ident| $waits_for:expr;)*) => {
        $(impl WorkVerb for $verb {
            fn waits_for(&self) -> WaitsFor {
                let $request = self;
                $waits_for
            }
        })*
    };
}

waits! {
    Receive: |verb| WaitsFor::Queue(verb.queue.clone());
    ReceiveRun: |verb| WaitsFor::Queue(verb.queue.clone());
    AcceptWorkflow: |verb| WaitsFor::Queue(verb.queue.clone());
    ReceiveDeadLetters: |verb| WaitsFor::DeadLetters(verb.queue.clone());
    ReceiveFromWorkflow: |verb| WaitsFor::AcceptedWorkflow(verb.token);
}

/// Gives messages back uncounted: the last first, so that none of a run waits behind one that was given back before it.
fn give_back(queue: &QueueName, handed: &[LockedMessage], post: &mut dyn FnMut(Command)) {
    for handed in handed.iter().rev() {
        let settle = Settle {
            queue: queue.clone(),
            token: handed.token,
            sequence: handed.sequence,
            delivery_count: handed.record.delivery_count,
            settlement: Settlement::Release,
        };
        post(settle.into());
    }
}
