// Prints each result as it comes: the label of the case, and its batch's summary as of that case.
import { Kafka, logLevel } from "kafkajs";
import { onResult } from "safe-scorer";

const kafka = new Kafka({
  clientId: "my-typescript-service",
  brokers: (process.env["KAFKA_BROKERS"] ?? "localhost:9092").split(","),
  logLevel: logLevel.WARN,
});

async function main(): Promise<void> {
  // A group of its own: clients in different languages cannot share one.
  const options = { groupId: process.env["GROUP_ID"] ?? "my-typescript-service", topic: process.env["RESULT_TOPIC"] };
  const results = await onResult(kafka, options, ({ batch_id, result, summary }) => {
    console.log(batch_id, result.test_id, result.label, summary.pass, "of", summary.total_cases);
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void results.stop());
  await results.finished;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
