// Prints, as JSON, what the Prometheus operator's own types and rules find wrong in each manifest of the list on standard
// input. The types know the fields that there are, the rules which values they take.
import { readFileSync } from "node:fs";
import * as models from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/index";
import ts from "typescript";

const MODELS = "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/index";
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

function wrongByType(manifests) {
  const lines = manifests.map(
    (manifest, i) => `export const m${i}: models.I${manifest.kind} = ${JSON.stringify(manifest)};`,
  );
  const text = [`import * as models from "${MODELS}";`, ...lines].join("\n");
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (name) => name === NAME || fileExists.call(host, name);
  host.getSourceFile = (name, ...rest) =>
    name === NAME ? ts.createSourceFile(name, text, ...rest) : getSourceFile.call(host, name, ...rest);
  const program = ts.createProgram([NAME], OPTIONS, host);
  const found = [...program.getOptionsDiagnostics(), ...program.getSemanticDiagnostics()];
  return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "));
}

function wrongByRule(manifest) {
  try {
    new models[manifest.kind](manifest).validate();
    return [];
  } catch (error) {
    return [error.message];
  }
}

const manifests = JSON.parse(readFileSync(0, "utf-8"));
console.log(JSON.stringify([...wrongByType(manifests), ...manifests.flatMap(wrongByRule)]));
