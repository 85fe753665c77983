/**
 * Messages of one workflow, one at a time, in order, even when they arrive shuffled, fail, or a process dies. A `Client` sends,
 * receives and operates over the HTTP API of a seriatim daemon; an `App` runs handlers.
 */

export { App, type AppOptions, Context, DeadLetter, Defer, type Handler, type HandlerOptions, Outcome, Retry, type RunOptions } from "./app.js";
export { Client, type Completion, Delivery, type NextOutcome, type OperateOptions, Queue, type ReceiveOptions, type Retrying, Run, Workflow } from "./client.js";
export {
  AlreadySettled,
  LockLost,
  NotFound,
  PlaceTaken,
  QueueFull,
  Refused,
  SeriatimError,
  Unauthorized,
  Unavailable,
  Unreachable,
} from "./errors.js";
export { type Body, type Json, type Message, type MessageFields, type Property, type Receipt, Received } from "./message.js";
export type { ClientOptions } from "./transport.js";
export { Worker } from "./worker.js";
