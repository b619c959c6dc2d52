// Scores the outputs of a run as `safe score` does, prints what each case lacks, and exits with the same code.
import { safeScore } from "safe-scorer";

async function main([concern = "STROKE", batch = "*", outputs = "run.json", testDir = "cases"]: string[]) {
  const { exitCode, report, messages } = await safeScore({ concern, batch, outputs, testDir });
  for (const line of messages) console.error(line);
  for (const { test_id, label, details } of report?.results ?? []) {
    console.log(test_id, label, [...details.CR.missing, ...details.AC.missing].join("; "));
  }
  process.exitCode = exitCode;
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error);
  process.exitCode = 3;
});
