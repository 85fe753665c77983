/** What can go wrong: a refusal of the daemon, or a daemon that cannot be reached. */

/** Anything that this package throws. */
export class SeriatimError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** The daemon could not be reached, or no answer of it came. Whether the request took effect is not known. */
export class Unreachable extends SeriatimError {}

/** The daemon answered no, and nothing was changed. */
export class Refused extends SeriatimError {
  /**
   * @param code what is wrong, for programs, as `place_taken`
   * @param detail the same for people
   * @param status the HTTP status
   * @param field what is wrong in the request, if something is
   */
  constructor(
    readonly code: string,
    readonly detail: string,
    readonly status: number,
    readonly field?: string,
  ) {
    super(`${detail} (${code})`);
  }
}

/** There is no such queue, workflow, message or delivery. */
export class NotFound extends Refused {}
/** The lock on a message is not held any more: somebody else may have the message by now. */
export class LockLost extends Refused {}
/** The delivery was settled in another way before. */
export class AlreadySettled extends Refused {}
/** Another message has this place in its workflow, or the place is settled. */
export class PlaceTaken extends Refused {}
/** The queue, the workflow or the disk takes no more. */
export class QueueFull extends Refused {}
/** The key is missing, is not known, or has no right for this. */
export class Unauthorized extends Refused {}
/** The daemon is stopping or has too much to do; the same may be asked again. */
export class Unavailable extends Refused {}

const byCode = new Map<string, typeof Refused>([
  ["lock_lost", LockLost],
  ["delivery_settled", AlreadySettled],
  ["place_taken", PlaceTaken],
  ["already_settled", PlaceTaken],
  ["queue_full", QueueFull],
  ["workflow_full", QueueFull],
  ["storage_full", QueueFull],
]);
const byStatus = new Map<number, typeof Refused>([
  [401, Unauthorized],
  [403, Unauthorized],
  [404, NotFound],
  [429, Unavailable],
  [503, Unavailable],
]);

/** After these nobody knows whether it was done: another node has not answered, or an engine has stopped that may have it in its file. */
const notKnown = ["unanswered", "stopped"];
/** How the codes of answers begin that are not the daemon's. */
const ofProxies = "http_";

/** The error for a problem document (RFC 9457), which is empty where somebody between has answered. */
export function failure(problem: Record<string, unknown>, status: number): SeriatimError {
  const code = String(problem["code"] ?? `${ofProxies}${status}`);
  const detail = String(problem["detail"] ?? problem["title"] ?? `the answer has the HTTP status ${status}`);
  // A proxy that fails says nothing of what was done before; with 503 it says that it has not begun.
  const isOfFailedProxy =
    status === 502 || status === 504 || (code.startsWith(ofProxies) && status >= 500 && status !== 503);
  if (isOfFailedProxy || notKnown.includes(code)) return new Unreachable(`${detail} (${code})`);
  const kind = byCode.get(code) ?? byStatus.get(status) ?? Refused;
  const field = problem["field"];
  return new kind(code, detail, status, field === undefined ? undefined : String(field));
}

/** Whether somebody between has refused, who knows nothing of messages. */
export function isOfProxy(error: Refused): boolean {
  return error.code.startsWith(ofProxies);
}
