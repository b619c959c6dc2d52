// Publishes generation outputs for SAFE to score, one CloudEvent for each: reads JSON lines from standard input.
import { createInterface } from "node:readline";
import { Kafka, Partitioners, logLevel } from "kafkajs";

export interface GenerationOutput {
  test_id: string;
  batch_id: string;
  concern_id?: string; // default: that of the test case
  archetype?: string; // default: that of the test case
  run_id?: string; // names one run of a prompt over the batch
  generated_at?: string; // RFC 3339 with a zone; the latest output of a test case counts
  // null: no answer; error_message: why the call of the model failed
  output: { signals?: string[]; summary?: string; followup_questions?: string[]; error_message?: string } | null;
}

const kafka = new Kafka({
  clientId: "factory-cli",
  brokers: (process.env["KAFKA_BROKERS"] ?? "localhost:9092").split(","),
  logLevel: logLevel.WARN,
});
const topic = process.env["INPUT_TOPIC"] ?? "factory.generation.output";

/** Returns when the brokers hold every event. If `traceparent` is given, the trace of the caller continues in SAFE. */
export async function publish(outputs: GenerationOutput[], traceparent?: string): Promise<void> {
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: true,
    maxInFlightRequests: 1,
  });
  await producer.connect();
  try {
    const messages = outputs.map((event) => ({
      key: `${event.batch_id}/${event.test_id}`,
      value: JSON.stringify(event),
      headers: {
        ce_specversion: "1.0",
        ce_id: `${event.run_id ?? ""}/${event.batch_id}/${event.test_id}`,
        ce_type: "factory:generation:output",
        ce_source: "/factory-cli",
        "content-type": "application/json",
        ...(traceparent === undefined ? {} : { traceparent }),
      },
    }));
    await producer.send({ topic, messages });
  } finally {
    await producer.disconnect();
  }
}

const outputs: GenerationOutput[] = [];
for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() !== "") outputs.push(JSON.parse(line));
}
await publish(outputs, process.env["TRACEPARENT"]);
console.log(`${outputs.length} outputs published`);
