//! Ready-made handlers: programs, webhooks, other queues.
