// Prints each result as it comes: the label of the case, and its batch's summary as of that case.
import { Kafka, logLevel } from "kafkajs";

export interface Result {
  concern_id: string;
  batch_id: string;
  summary: { total_cases: number; pass: number; review: number; fail: number; overall_pass_rate: number };
  expected_cases: number | null;
  complete: boolean;
  generation?: "answered" | "failed"; // failed: no model wrote the output
  run_id: string | null;
  result: {
    test_id: string;
    archetype: string | null;
    scores: { CR: number; AH: number; AC: number; composite: number };
    details: {
      CR: { found: string[]; missing: string[] };
      AH: { violations: string[] };
      AC: { found: string[]; missing: string[] };
    };
    label: "Pass" | "Review" | "Fail";
  };
}

const kafka = new Kafka({
  clientId: "my-service",
  brokers: (process.env["KAFKA_BROKERS"] ?? "localhost:9092").split(","),
  logLevel: logLevel.WARN,
});
const consumer = kafka.consumer({
  groupId: process.env["GROUP_ID"] ?? "my-service",
  readUncommitted: false, // leaves out what a worker that crashed had not committed
});

await consumer.connect();
await consumer.subscribe({ topics: [process.env["RESULT_TOPIC"] ?? "safe.v0.result"], fromBeginning: true });
// The offset is committed after each message has been worked on: a crash repeats a result and loses none.
await consumer.run({
  eachMessage: async ({ message }) => {
    if (message.headers?.["ce_type"]?.toString() !== "safe:v0:result" || message.value === null) return;
    const event: Result = JSON.parse(message.value.toString());
    const { result, summary } = event;
    console.log(event.batch_id, result.test_id, result.label, summary.pass, "of", summary.total_cases);
  },
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void consumer.disconnect());
