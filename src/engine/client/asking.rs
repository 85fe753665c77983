//! How a client asks: a verb or a look, answered by its own type.

use std::pin::Pin;
use std::time::Duration;

use crate::engine::client::client::Client;
use crate::engine::inbox::Request;
use crate::engine::left_answers::LeftAnswers;
use crate::engine::letter::WorkWait;
use crate::engine::query::LookSlot;
use crate::engine::query::Query;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verb::Answer;
use crate::engine::rules::verb::AnswerTypes;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::WorkVerb;
use crate::engine::rules::verb::surely;
use crate::engine::rules::verbs::Command;
use crate::engine::rules::verbs::OnRecord;
use crate::error::Misuse;
use crate::error::OperationError;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::error::ReceiveError;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::token::LockToken;

/// A reply that is awaited.
type ReplyFuture<'c> = Pin<Box<dyn Future<Output = Result<Reply, Unavailable>> + Send + 'c>>;

impl Client {
    /// Asks, and waits for what is done.
    pub(crate) async fn ask<V>(&self, verb: V) -> Result<V::Done, OperationError<V::Refusal>>
    where
        V: EngineVerb + AnswerTypes<Refusal: std::error::Error>,
    {
        self.answer(verb).await?.map_err(OperationError::Refused)
    }

    /// The same, and is heard also if nobody waits for the answer any more.
    pub(crate) async fn ask_at_once<V>(&self, verb: V) -> Result<V::Done, OperationError<V::Refusal>>
    where
        V: EngineVerb + AnswerTypes<Refusal: std::error::Error>,
    {
        self.inbox().ask_at_once(verb).await?.map_err(OperationError::Refused)
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn answer<V: EngineVerb>(&self, verb: V) -> Result<Answer<V>, Unavailable> {
        const { assert!(!V::IS_OPERATORS, "what operators ask is put on record") };
        self.inbox().ask(verb, None).await
    }

    /// Asks as an operator: it is put on record if somebody is named, and only tried in a dry run.
    pub(crate) async fn operate<V>(&self, verb: V) -> Result<V::Done, OperationError<V::Refusal>>
    where
        V: EngineVerb + AnswerTypes<Refusal: std::error::Error> + Into<Command>,
    {
        if self.is_dry_run() && !V::CAN_BE_TRIED {
            let problem = "cannot be made of what is done to queues and topics";
            return Err(OperationError::Misuse(Misuse::new("dry_run", problem)));
        }
        self.answer_operator(verb, None).await?.map_err(OperationError::Refused)
    }

    /// The same, going on with an entry of the audit if one was begun.
    pub(crate) async fn answer_operator<V: EngineVerb + Into<Command>>(
        &self,
        verb: V,
        begun: Option<u64>,
    ) -> Result<Answer<V>, Unavailable> {
        let is_tried = self.is_dry_run() && V::CAN_BE_TRIED;
        let reply = self.have_done(verb.into(), begun, is_tried).await?;
        V::answer_in(reply).ok_or_else(Unavailable::nonsense)
    }

    /// Operators ask seldom: whatever they ask takes one way, so that it is compiled once.
    fn have_done(&self, command: Command, begun: Option<u64>, is_tried: bool) -> ReplyFuture<'_> {
        Box::pin(async move {
            if is_tried {
                return self.inbox().try_out(command).await;
            }
            let command = match self.actor().cloned() {
                Some(actor) => Command::OnRecord(Box::new(OnRecord { actor, begun, command })),
                None => command,
            };
            Ok(surely(self.inbox().ask(command, None).await?))
        })
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

    /// The same, and says where its answer is left if nobody waits for it any more.
    pub(crate) async fn ask_for_work_or_leave<V: WorkVerb>(
        &self,
        verb: V,
        wait: Duration,
        left: &LeftAnswers,
    ) -> Result<V::Done, ReceiveError> {
        let work_wait = WorkWait::new(&verb, wait.min(limits::DURATION_MAX));
        self.inbox().ask_or_leave(verb, work_wait, left).await?.map_err(ReceiveError::Refused)
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

    /// Tells whoever waits for work under a token that it has waited long enough.
    pub(crate) fn withdraw(&self, token: LockToken) {
        self.inbox().post_at_once(Request::Withdraw(token));
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
