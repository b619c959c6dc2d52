import { createHash, randomUUID } from "node:crypto";
import { type Kafka, type Message, Partitioners, type Producer } from "kafkajs";
import type { GenerationOutput } from "./types.js";

const SENT = ["test_id", "batch_id", "concern_id", "archetype", "metric_id", "run_id", "generated_at"] as const;
type Sent = (typeof SENT)[number];

/** What a brokers' default accepts as one batch, with room for headers. */
const REQUEST_BYTES = 900_000;

/** What an engine wrote; null in place of it is an empty output. */
export interface EngineOutput {
  signals?: string[];
  summary?: string;
  followup_questions?: string[];
}

/** One answer to a test case: what the model wrote (`output`), or why its call failed (`failure`). */
export type PublishedOutput = Pick<GenerationOutput, Sent> & {
  /**
   * The narrative that the model was given, word for word: by it SAFE sees whether the output was made from the
   * narrative of its own test case. null if it is not known: then nothing is checked.
   */
  narrative: string | null;
} & ({ output: EngineOutput | null; failure?: undefined } | { failure: string; output?: undefined });

export interface PublisherOptions {
  /** The input topic of SAFE; default: factory.generation.output. */
  topic?: string | undefined;
  /** Who publishes, as a URI reference (CloudEvents); default: /factory-cli. */
  source?: string | undefined;
  /** Send the narrative itself, or only its digest, with which SAFE checks as much; default: digest. */
  narrative?: "digest" | "text" | undefined;
}

export interface EventOptions {
  /** The event's id (`ce_id`), which its result names as `ce_causationid`; default: a random one. */
  id?: string | undefined;
  /** W3C trace context: the trace goes on in SAFE, and in its result. */
  traceparent?: string | undefined;
  tracestate?: string | undefined;
}

interface Waiting {
  message: Message;
  bytes: number;
  resolve: () => void;
  reject: (reason: unknown) => void;
}

/** Publishes outputs for SAFE to score. Never more than one request is in flight, however many calls there are. */
export class OutputPublisher {
  private readonly topic: string;
  private readonly source: string;
  private readonly narrative: "digest" | "text";
  private producer: Promise<Producer> | undefined;
  private waiting: Waiting[] = [];
  private sending: Promise<void> | undefined;
  private isClosed = false;

  constructor(
    private readonly kafka: Kafka,
    options: PublisherOptions = {},
  ) {
    this.topic = options.topic ?? "factory.generation.output";
    this.source = options.source ?? "/factory-cli";
    this.narrative = options.narrative ?? "digest";
  }

  /**
   * Publish one output; resolves to the event's id once the brokers hold it. Call it for many outputs at once, as with
   * Promise.all: what waits for the request in flight goes out together in the next one.
   */
  async publishOutput(output: PublishedOutput, options: EventOptions = {}): Promise<string> {
    if (this.isClosed) throw new Error("the publisher is closed; make a new one");
    const id = options.id ?? randomUUID();
    const value = JSON.stringify(eventOf(output, this.narrative));
    const message = { key: keyOf(output.batch_id, output.test_id), value, headers: this.headers(id, options) };
    await new Promise<void>((resolve, reject) => {
      this.waiting.push({ message, bytes: Buffer.byteLength(value), resolve, reject });
      this.sending ??= this.send();
    });
    return id;
  }

  /** Send what is waiting, then disconnect. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.sending;
    await this.drop();
  }

  private headers(id: string, { traceparent, tracestate }: EventOptions): Record<string, string> {
    return {
      ce_specversion: "1.0",
      ce_id: id,
      ce_type: "factory:generation:output",
      ce_source: this.source,
      "content-type": "application/json",
      ...(traceparent === undefined ? {} : { traceparent }),
      ...(tracestate === undefined ? {} : { tracestate }),
    };
  }

  private async send(): Promise<void> {
    await Promise.resolve(); // the calls of one moment go out in one request
    while (this.waiting.length > 0) {
      const group = this.waiting.splice(0, this.fitting());
      try {
        const producer = await (this.producer ??= connected(this.kafka));
        await producer.send({ topic: this.topic, acks: -1, messages: group.map(({ message }) => message) });
        for (const each of group) each.resolve();
      } catch (error) {
        // The brokers may hold what was sent. The same producer would give its sequence numbers to other events, which
        // the brokers would then take for repeated ones, and drop.
        await this.drop();
        for (const each of group) each.reject(error);
      }
    }
    this.sending = undefined;
  }

  /** How many of those that wait fit into one request; at least one. */
  private fitting(): number {
    let bytes = 0;
    const tooMany = this.waiting.findIndex((each) => (bytes += each.bytes) > REQUEST_BYTES);
    return tooMany === -1 ? this.waiting.length : Math.max(1, tooMany);
  }

  private async drop(): Promise<void> {
    const producer = this.producer;
    this.producer = undefined;
    await producer?.then((each) => each.disconnect()).catch(() => undefined);
  }
}

async function connected(kafka: Kafka): Promise<Producer> {
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: true,
    maxInFlightRequests: 1,
  });
  await producer.connect();
  return producer;
}

function keyOf(...parts: string[]): string {
  return parts.map((part) => part.replaceAll("%", "%25").replaceAll("/", "%2F")).join("/");
}

function eventOf(published: PublishedOutput, form: "digest" | "text"): GenerationOutput {
  const { narrative, output, failure } = published;
  if (failure !== undefined && failure.trim() === "") {
    throw new TypeError(`${published.test_id}: failure is blank; SAFE would take it for an answer without any text`);
  }
  const digest = narrative === null ? null : narrativeDigest(narrative);
  if (narrative !== null && digest === null) {
    throw new TypeError(`${published.test_id}: narrative is blank; give the one that the model read, or null`);
  }
  const ids = Object.fromEntries(SENT.map((name) => [name, published[name]])) as Pick<PublishedOutput, Sent>;
  const { signals = null, summary = null, followup_questions = null } = output ?? {};
  const said = failure === undefined ? { signals, summary, followup_questions } : { error_message: failure };
  return form === "text"
    ? { ...ids, output: { ...said, raw_input: narrative } }
    : { ...ids, input_digest: digest, output: said };
}

/** White space as SAFE splits a narrative at it (Python's), which is not quite that of JavaScript. */
const WHITE_SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;

/** The digest by which SAFE knows a narrative, whatever its white space; null if it is blank. */
export function narrativeDigest(narrative: string): string | null {
  const words = narrative.split(WHITE_SPACE).filter((word) => word !== "");
  if (words.length === 0) return null;
  return `sha256:${createHash("sha256").update(words.join(" "), "utf8").digest("hex")}`;
}
