// Publishes the outputs of a run for SAFE to score: one JSON object a line, from standard input.
import { readFileSync } from "node:fs";
import { Kafka, logLevel } from "kafkajs";
import { OutputPublisher, type PublishedOutput } from "safe-scorer";

const kafka = new Kafka({
  clientId: "factory-cli",
  brokers: (process.env["KAFKA_BROKERS"] ?? "localhost:9092").split(","),
  logLevel: logLevel.WARN,
});

/** Resolves when the brokers hold every output. With `traceparent`, the trace of the caller goes on in SAFE. */
export async function publish(outputs: PublishedOutput[], traceparent?: string): Promise<void> {
  const publisher = new OutputPublisher(kafka, { topic: process.env["INPUT_TOPIC"] });
  try {
    await Promise.all(outputs.map((output) => publisher.publishOutput(output, { traceparent })));
  } finally {
    await publisher.close();
  }
}

async function main(): Promise<void> {
  const lines = readFileSync(0, "utf8").split("\n").filter((line) => line.trim() !== "");
  await publish(lines.map((line) => JSON.parse(line)), process.env["TRACEPARENT"]);
  console.log(`${lines.length} outputs published`);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
