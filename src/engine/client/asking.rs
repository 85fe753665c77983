//! How a client asks: a verb or a look, answered by its own type.

use std::time::Duration;

use crate::engine::client::client::Client;
use crate::engine::letter::WorkWait;
use crate::engine::query::LookSlot;
use crate::engine::query::Query;
use crate::engine::rules::verb::Answer;
use crate::engine::rules::verb::AnswerTypes;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::WorkVerb;
use crate::engine::rules::verbs::OnRecord;
use crate::error::OperationError;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::error::ReceiveError;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::token::LockToken;

impl Client {
    /// Asks, and waits for what is done.
    pub(crate) async fn ask<V>(&self, verb: V) -> Result<V::Done, OperationError<V::Refusal>>
    where
        V: EngineVerb + AnswerTypes<Refusal: std::error::Error>,
    {
        self.answer(verb, None).await?.map_err(OperationError::Refused)
    }

    /// Asks, goes on with an entry of the audit if one was begun, and waits for the answer.
    pub(crate) async fn answer<V: EngineVerb>(
        &self,
        verb: V,
        begun: Option<u64>,
    ) -> Result<Answer<V>, Unavailable> {
        if self.is_dry_run() && V::CAN_BE_TRIED {
            return self.inbox().try_out(verb).await;
        }
        match V::IS_OPERATORS {
            true => self.answer_on_record(verb, begun).await,
            false => self.inbox().ask(verb, None).await,
        }
    }

    /// Puts what is asked on record, if somebody is named.
    async fn answer_on_record<V: EngineVerb>(
        &self,
        command: V,
        begun: Option<u64>,
    ) -> Result<Answer<V>, Unavailable> {
        match self.actor().cloned() {
            Some(actor) => self.inbox().ask(OnRecord { actor, begun, command }, None).await,
            None => self.inbox().ask(command, None).await,
        }
    }

    /// Asks for what operators do only now and then, and puts it on record if somebody is named.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only the daemon has schedules"))]
    pub(crate) async fn ask_on_record<V>(&self, verb: V) -> Result<V::Done, OperationError<V::Refusal>>
    where
        V: EngineVerb + AnswerTypes<Refusal: std::error::Error>,
    {
        self.answer_on_record(verb, None).await?.map_err(OperationError::Refused)
    }

    /// Asks for work, and waits for it up to `wait`.
    pub(crate) async fn ask_for_work<V: WorkVerb>(
        &self,
        verb: V,
        wait: Duration,
    ) -> Result<V::Done, ReceiveError> {
        let work_wait = WorkWait::new(&verb, wait.min(limits::DURATION_MAX));
        self.inbox().ask(verb, Some(work_wait)).await?.map_err(ReceiveError::Refused)
    }

    /// Asks for work under a token, and waits for it up to `wait`, or until there is `enough`.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    pub(crate) async fn ask_for_work_until<V: WorkVerb>(
        &self,
        verb: V,
        token: LockToken,
        wait: Duration,
        enough: impl Future<Output = ()>,
    ) -> Result<V::Done, ReceiveError> {
        let work_wait = WorkWait::new(&verb, wait.min(limits::DURATION_MAX));
        self.inbox().ask_until(verb, token, work_wait, enough).await?.map_err(ReceiveError::Refused)
    }

    /// Looks something up in a queue.
    pub(crate) async fn look<T>(
        &self,
        queue: &QueueName,
        query: impl FnOnce(LookSlot<Option<T>>) -> Query,
    ) -> Result<T, QueueError> {
        let found = self.look_up(query).await?;
        found.ok_or_else(|| QueueError::Refused(QueueRefusal::QueueNotFound(queue.clone())))
    }

    /// Looks something up that is in no queue.
    pub(crate) async fn look_up<T>(
        &self,
        query: impl FnOnce(LookSlot<T>) -> Query,
    ) -> Result<T, Unavailable> {
        self.inbox().look(query).await
    }
}
