// Prints, as JSON, what the types and rules of the operators find wrong in each manifest of the list on standard input: of
// Prometheus, KEDA and Strimzi. The types know the fields that there are, the rules which values they take.
import { readFileSync } from "node:fs";
import ts from "typescript";

const MODELS = {
  "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/index",
  "keda.sh/v1alpha1": "@kubernetes-models/keda/keda.sh/v1alpha1",
  "kafka.strimzi.io/v1": "@kubernetes-models/strimzi-kafka-operator/kafka.strimzi.io/v1",
};
const OPTIONS = {
  strict: true,
  skipLibCheck: true,
  noEmit: true,
  types: [],
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
};
// Beside node_modules, where the types are looked for; it stands in memory alone.
const NAME = `${import.meta.dirname}/manifests.ts`;

const modelsOf = ({ apiVersion }) => {
  if (!(apiVersion in MODELS)) throw new Error(`no types are known for ${apiVersion}`);
  return MODELS[apiVersion];
};

function wrongByType(manifests) {
  const lines = manifests.map(
    (manifest, i) =>
      `export const m${i}: import("${modelsOf(manifest)}").I${manifest.kind} = ${JSON.stringify(manifest)};`,
  );
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (name) => name === NAME || fileExists.call(host, name);
  host.getSourceFile = (name, ...rest) =>
    name === NAME ? ts.createSourceFile(name, lines.join("\n"), ...rest) : getSourceFile.call(host, name, ...rest);
  const program = ts.createProgram([NAME], OPTIONS, host);
  const found = [...program.getOptionsDiagnostics(), ...program.getSemanticDiagnostics()];
  return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "));
}

async function wrongByRule(manifest) {
  const models = await import(modelsOf(manifest));
  try {
    new models[manifest.kind](manifest).validate();
    return [];
  } catch (error) {
    return [error.message];
  }
}

const manifests = JSON.parse(readFileSync(0, "utf-8"));
const byRule = await Promise.all(manifests.map(wrongByRule));
console.log(JSON.stringify([...wrongByType(manifests), ...byRule.flat()]));
