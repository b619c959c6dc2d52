import { spawn } from "node:child_process";
import { constants } from "node:os";
import type { CaseResult, Generation, Report } from "./types.js";

export interface SafeScoreOptions {
  /** The concern whose test cases are scored. */
  concern: string;
  /** Which batches: a name or a glob; "*" means all. */
  batch: string;
  /** factory-cli reports, JSONL files of events, or folders of them. */
  outputs: string | string[];
  /** The folder of batch files. */
  testDir: string;
  /** More options of `safe score`, such as ["--output", "report.html", "--min-pass-rate", "0.8"]. */
  args?: string[] | undefined;
  /** How SAFE is started; default: ["safe"]. Another one: ["python", "-m", "safe_scorer"]. */
  command?: string[] | undefined;
  cwd?: string | undefined;
  env?: NodeJS.ProcessEnv | undefined;
}

/** A case as a report made from files has it. */
export interface ScoredCase extends CaseResult {
  batch_id: string;
  input_matches: boolean | null;
  generation: Generation | null;
}

/** The report of a run over files; docs/contract.md lists fields that are not listed here. */
export interface ScoreReport extends Report {
  results: ScoredCase[];
  missing_test_ids: string[];
}

export interface SafeScoreRun {
  /**
   * That of `safe score`. Without conditions: 0 if all cases pass, 1 if any fails, 2 if none fails but some need
   * review. With conditions, such as --min-pass-rate: 0 if all hold, 1 if not. 3 if options or files are wrong.
   */
  exitCode: number;
  /** null if nothing was scored (exit code 3). */
  report: ScoreReport | null;
  /** What SAFE had to say, line by line: remarks and, with exit code 3, what is wrong and what to do. */
  messages: string[];
}

/** Run `safe score`, and keep its exit code. Rejects only if SAFE cannot be started. */
export async function safeScore(options: SafeScoreOptions): Promise<SafeScoreRun> {
  const { concern, batch, testDir, args = [], command = ["safe"] } = options;
  const outputs = [options.outputs].flat().flatMap((path) => ["--outputs", path]);
  const selected = ["--concern", concern, "--batch", batch, "--test-dir", testDir, ...outputs];
  const done = await run([...command, "score", ...selected, ...args, "--output", "-", "--format", "json"], options);
  const hasReport = done.exitCode <= 2 && done.stdout !== "";
  return {
    exitCode: done.exitCode,
    report: hasReport ? (JSON.parse(done.stdout) as ScoreReport) : null,
    messages: done.stderr.split("\n").filter((line) => line !== ""),
  };
}

interface Done {
  exitCode: number;
  stdout: string;
  stderr: string;
}

function run([program = "", ...args]: string[], { cwd, env }: SafeScoreOptions): Promise<Done> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.on("error", (cause) => {
      reject(new Error(`${program} cannot be started: install SAFE, or name it with the option "command"`, { cause }));
    });
    child.on("close", (code, signal) => {
      resolve({ exitCode: code ?? 128 + constants.signals[signal ?? "SIGKILL"], stdout, stderr });
    });
  });
}
