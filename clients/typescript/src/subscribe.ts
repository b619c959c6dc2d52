import type { Consumer, IHeaders, Kafka, KafkaMessage } from "kafkajs";
import type { Report, Result } from "./types.js";

export interface SubscribeOptions {
  /** Your own consumer group: one for each subscription, shared only by copies of the same service. */
  groupId: string;
  /** The topic; default: safe.v0.result, or safe.v0.report. */
  topic?: string | undefined;
  /** Where a group begins that has read nothing yet: with the first event (default), or with the next one. */
  fromBeginning?: boolean | undefined;
}

/** The attributes of an event (CloudEvents). `id` and `source` together identify it, also when it is repeated. */
export interface EventAttributes {
  id: string;
  source: string;
  type: string;
  time: string | undefined;
  subject: string | undefined;
  causationid: string | undefined;
  traceparent: string | undefined;
  topic: string;
  partition: number;
  offset: string;
}

export interface Subscription {
  /** Rejects when the consumer has failed for good; resolves after stop(). Unless you handle it, Node.js ends. */
  readonly finished: Promise<void>;
  /** Finish the event in work, commit, leave the group. */
  stop(): Promise<void>;
}

/** An event's offset is committed after the handler: an event may come again after a crash, but none is lost. */
export type Handler<Data> = (data: Data, event: EventAttributes) => void | Promise<void>;

/** Call `handle` for each result, one after the other; those of a batch come in order. */
export function onResult(kafka: Kafka, options: SubscribeOptions, handle: Handler<Result>): Promise<Subscription> {
  return subscribe(kafka, options, "result", handle);
}

/** Call `handle` for each report, one after the other; the latest one of a batch is in force. */
export function onReport(kafka: Kafka, options: SubscribeOptions, handle: Handler<Report>): Promise<Subscription> {
  return subscribe(kafka, options, "report", handle);
}

/** KafkaJS gives members of a group partitions of topics that only others of them have subscribed to. */
const topicOfGroup = new Map<string, string>();

async function subscribe<Data>(
  kafka: Kafka,
  { groupId, topic: named, fromBeginning = true }: SubscribeOptions,
  kind: "result" | "report",
  handle: Handler<Data>,
): Promise<Subscription> {
  const topic = named ?? `safe.v0.${kind}`;
  const other = topicOfGroup.get(groupId);
  if (other !== undefined && other !== topic) {
    throw new Error(`group ${groupId} already reads ${other}: give the subscription of ${topic} a group of its own`);
  }
  topicOfGroup.set(groupId, topic);
  const consumer = kafka.consumer({ groupId, readUncommitted: false });
  const subscription = lifeOf(consumer, () => topicOfGroup.delete(groupId));
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning });
    await consumer.run({
      eachMessage: async ({ topic, partition, message }) => {
        const event = attributesOf(message, topic, partition);
        if (event.type === `safe:v0:${kind}` && message.value !== null) await handle(dataOf<Data>(message.value, event), event);
      },
    });
  } catch (error) {
    await subscription.stop();
    throw error;
  }
  return subscription;
}

function lifeOf(consumer: Consumer, forget: () => void): Subscription {
  let end: () => void;
  let fail: (reason: unknown) => void;
  const finished = new Promise<void>((resolve, reject) => ([end, fail] = [resolve, reject]));
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (payload.restart) return;
    forget();
    fail(payload.error);
  });
  const stop = async (): Promise<void> => {
    await consumer.disconnect();
    forget();
    end();
  };
  return { finished, stop };
}

function attributesOf(message: KafkaMessage, topic: string, partition: number): EventAttributes {
  const named = (name: string): string | undefined => text(message.headers, name);
  return {
    id: named("ce_id") ?? "",
    source: named("ce_source") ?? "",
    type: named("ce_type") ?? "",
    time: named("ce_time"),
    subject: named("ce_subject"),
    causationid: named("ce_causationid"),
    traceparent: named("traceparent"),
    topic,
    partition,
    offset: message.offset,
  };
}

function text(headers: IHeaders | undefined, name: string): string | undefined {
  const value = headers?.[name];
  return Array.isArray(value) ? value[0]?.toString() : value?.toString();
}

function dataOf<Data>(value: Buffer, { topic, partition, offset }: EventAttributes): Data {
  try {
    return JSON.parse(value.toString()) as Data;
  } catch {
    // Node.js quotes the text in its error; errors go to logs.
    throw new Error(`${topic}[${partition}] offset ${offset}: the value is not JSON, so SAFE did not write it`);
  }
}
