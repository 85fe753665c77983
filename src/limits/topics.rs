//! Bounds of topics, their rules, and the filters in these.

/// Longest name of a subscription in bytes, as in Service Bus.
pub const SUBSCRIPTION_NAME_BYTES_MAX: usize = 50;

/// Most subscriptions of one topic: a message that all of them want is copied so often in one commit.
pub const SUBSCRIPTIONS_MAX: usize = 2_000;

/// Most rules of all subscriptions of one topic: they are one row, which is written anew with each change.
pub const TOPIC_RULES_MAX: usize = 100_000;

/// Most rules that one definition gives its subscription: people write them.
pub const SUBSCRIPTION_RULES_MAX: usize = 256;

/// Most bytes of the names, filters and actions of one topic: they are one row, kept in memory twice.
pub const TOPIC_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most topics in one file: they are looked through by name.
pub const TOPICS_MAX: usize = 1_000;

/// Most copies that one send to a topic makes: one command must not own more than a turn.
pub const TOPIC_COPIES_MAX: usize = 16 * 1024;

/// Most bytes of bodies and headers that the copies of one send to a topic, or of all in one transaction, have together: as many as
/// the inbox holds, since they are in memory and in one row of the journal at once.
pub const TOPIC_COPIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Most copies that all sends to topics in one transaction make: they are one turn, whose rows are counted with 22 bits, and are
/// tried before they are done. Service Bus takes 100 messages in a transaction.
pub const TRANSACTION_COPIES_MAX: usize = 16 * TOPIC_COPIES_MAX;

/// How often a send to a topic whose rules were changed meanwhile chooses its copies again: to give up it has to lose against
/// as many commits of new rules in a row.
pub const TOPIC_TRIES_MAX: usize = 256;

/// Longest name of a rule in characters, as in Service Bus.
pub const RULE_NAME_CHARS_MAX: usize = 50;

/// Longest filter or action in bytes: each message is judged by all of it.
pub const FILTER_BYTES_MAX: usize = 4 * 1024;

/// Deepest nesting of a filter: reading and judging recurse. Chains of AND, OR and sums are not nested.
pub const FILTER_DEPTH_MAX: usize = 32;

/// Longest name of a property in a filter, in characters.
pub const FILTER_NAME_CHARS_MAX: usize = 128;

/// Most conditions of one correlation filter: each is compared.
pub const CORRELATION_CONDITIONS_MAX: usize = 64;

/// Most statements of one action, as in Service Bus.
pub const ACTION_STATEMENTS_MAX: usize = 32;
