// Compiles src/ twice, for require() and for import, each with its own declarations.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { rmSync, writeFileSync } from "node:fs";

const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const FORMATS = {
  cjs: { type: "commonjs", options: ["--module", "CommonJS", "--moduleResolution", "Node10"] },
  esm: { type: "module", options: ["--module", "ES2022", "--moduleResolution", "Bundler"] },
};

rmSync("dist", { recursive: true, force: true });
for (const [name, { type, options }] of Object.entries(FORMATS)) {
  execFileSync(process.execPath, [tsc, "-p", ".", "--outDir", `dist/${name}`, ...options], { stdio: "inherit" });
  writeFileSync(`dist/${name}/package.json`, `${JSON.stringify({ type })}\n`);
}
