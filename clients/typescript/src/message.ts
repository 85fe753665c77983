/** Messages: what is sent, and what is received. */

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
/** A body: bytes as they are, text as UTF-8, anything else as JSON. */
export type Body = Uint8Array | Json;
/** A property of a message. */
export type Property = string | number | boolean | Uint8Array;

/** What a sender may say of a message. */
export interface MessageFields {
  /** The workflow: its messages are handled one at a time. */
  workflow?: string;
  /** The place in the workflow, where the queue is ordered by position: 1, 2, 3. */
  position?: number;
  /** The `id` of the predecessor, where the queue's order is `after`. */
  after?: string;
  /** Whether it is the first of a workflow in that order. */
  first?: boolean;
  /** The sender's ID, by which duplicates are recognised. */
  id?: string;
  subject?: string;
  contentType?: string;
  correlationId?: string;
  replyTo?: string;
  properties?: Record<string, Property>;
  /** How long it lives, in milliseconds. */
  timeToLiveMs?: number;
  /** When it is due. */
  scheduleAt?: Date;
  /** For how long it is kept back from its acceptance, whatever the clock is set to. */
  delayMs?: number;
}

/** A message to send. */
export interface Message extends MessageFields {
  body?: Body;
}

/** A length of time in milliseconds, as the daemon reads it. */
export function duration(ms: number): string {
  if (!(ms >= 0)) throw new RangeError(`a duration cannot be negative, and ${ms} ms is`);
  return `${Math.round(ms)}ms`;
}

/** A text for people, with U+FFFD for what UTF-8 has not: half of a character, as where a text was cut. */
export const told = (text: string): string => text.replace(/\p{Surrogate}/gu, "\uFFFD");

const shownProperty = (value: Property): unknown =>
  value instanceof Uint8Array ? { base64: Buffer.from(value).toString("base64") } : value;

const readProperty = (value: unknown): Property =>
  typeof value === "object" && value !== null && "base64" in value
    ? new Uint8Array(Buffer.from(String(value.base64), "base64"))
    : (value as Property);

/** The message as JSON, as the daemon reads it. */
export function envelope(message: Message, queue?: string): Record<string, unknown> {
  const { body = new Uint8Array(), properties } = message;
  const fields: Record<string, unknown> = {
    queue,
    workflow_id: message.workflow,
    position: message.position,
    after: message.after,
    first: message.first || undefined,
    message_id: message.id,
    subject: message.subject,
    content_type: message.contentType,
    correlation_id: message.correlationId,
    reply_to: message.replyTo,
    properties:
      properties && Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, shownProperty(value)])),
    time_to_live: message.timeToLiveMs === undefined ? undefined : duration(message.timeToLiveMs),
    schedule_at: message.scheduleAt?.toISOString(),
    delay: message.delayMs === undefined ? undefined : duration(message.delayMs),
  };
  if (body instanceof Uint8Array) fields["body_base64"] = Buffer.from(body).toString("base64");
  else if (typeof body === "string") fields["body_text"] = body;
  else fields["body"] = body;
  for (const text of [...Object.values(fields), ...Object.entries(properties ?? {}).flat()]) {
    // To the daemon, all that it stands in could not be read.
    if (typeof text === "string" && told(text) !== text) throw new TypeError("there is half of a character in what is sent");
  }
  return fields;
}

/** What became of a message that was sent. */
export interface Receipt {
  status: "accepted" | "duplicate" | "already_settled" | "dead_lettered";
  /** Its number, if it has one that JavaScript can tell: see `Received.sequenceNumber`. */
  sequenceNumber?: number;
}

/** A sequence number. Fails where JavaScript has rounded it: it would name another message. */
export function exact(sequenceNumber: number): number {
  if (Number.isSafeInteger(sequenceNumber)) return sequenceNumber;
  throw new RangeError("JavaScript rounds this sequence number, and it would be that of another message");
}

/** How a message is named in what is logged. */
export function named({ envelope }: Received): string {
  const number = envelope["sequence_number"];
  return `${envelope["queue"]}#${Number.isSafeInteger(number) ? number : "?"}`;
}

/** Reads a receipt of the daemon. */
export function receipt(answer: { status: Receipt["status"]; sequence_number?: number }): Receipt {
  const { status, sequence_number } = answer;
  return Number.isSafeInteger(sequence_number) ? { status, sequenceNumber: sequence_number! } : { status };
}

/** What the daemon says of a message. */
export type Envelope = Record<string, any>;

/** A message as it is handed out. What the daemon said of it stands in `envelope`. */
export class Received {
  readonly queue: string;
  readonly workflow: string | undefined;
  readonly position: number | undefined;
  readonly id: string | undefined;
  readonly subject: string | undefined;
  readonly contentType: string | undefined;
  /** How often the message was handed out, this time included. */
  readonly deliveryCount: number;
  readonly properties: Record<string, Property>;

  constructor(readonly envelope: Envelope) {
    this.queue = envelope["queue"];
    this.workflow = envelope["workflow_id"];
    this.position = envelope["position"];
    this.id = envelope["message_id"];
    this.subject = envelope["subject"];
    this.contentType = envelope["content_type"];
    this.deliveryCount = envelope["delivery_count"];
    const properties = Object.entries(envelope["properties"] ?? {});
    this.properties = Object.fromEntries(properties.map(([name, value]) => [name, readProperty(value)]));
  }

  /** Its number in the queue. Of partitions 32 and up of a cluster it is above 2^53: JavaScript rounds it, and this fails. */
  get sequenceNumber(): number {
    return exact(this.envelope["sequence_number"]);
  }

  /**
   * The body as bytes. They are those that were sent, except where the content type is JSON: such a body is handed out as a JSON value
   * and written anew here, so that `1.10` is `1.1`, white space and repeated names are gone, and whole numbers above 2^53 are others.
   * Whoever needs its bytes, as to check a signature, receives with `raw: true` (`App`, `Queue.receive`).
   */
  get body(): Uint8Array {
    if ("body" in this.envelope) return Buffer.from(JSON.stringify(this.envelope["body"]));
    if ("body_text" in this.envelope) return Buffer.from(this.envelope["body_text"]);
    return Buffer.from(this.envelope["body_base64"] ?? "", "base64");
  }

  /** The body as text. */
  get text(): string {
    return Buffer.from(this.body).toString();
  }

  /** The body as JSON has it. */
  json<T = any>(): T {
    return "body" in this.envelope ? this.envelope["body"] : JSON.parse(this.text);
  }

  /** The state of the message's workflow: as JSON has it, else as bytes; `undefined` when there is none. */
  get state(): any {
    const bytes = this.envelope["state_base64"];
    return bytes === undefined ? this.envelope["state"] : new Uint8Array(Buffer.from(bytes, "base64"));
  }
}
