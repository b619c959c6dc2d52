// Prints src/types.ts, made from the JSON Schemas of SAFE's events: node generate-types.mjs FOLDER
import { readFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";

const folder = process.argv[2];
const EVENTS = { Result: "result", Report: "report", GenerationOutput: "input", DeadLetterHeaders: "dead-letter" };

// What may be anything in an event, but should be a text.
const TEXTS = ["input_digest", "error_message", "raw_input"];

const definitions = {};
function define(name, schema) {
  const known = definitions[name];
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema)) {
    throw new Error(`two schemas define ${name}, and differently`);
  }
  definitions[name] = schema;
}

for (const [name, file] of Object.entries(EVENTS)) {
  const { $defs = {}, $id, $schema, examples, ...event } = JSON.parse(
    readFileSync(`${folder}/${file}.schema.json`, "utf8"),
  );
  for (const fields of [event.properties, event.properties.output?.properties ?? {}]) {
    for (const field of TEXTS.filter((each) => each in fields)) fields[field].tsType = "string | null";
  }
  define(name, { ...event, title: name });
  for (const [inner, schema] of Object.entries($defs)) define(inner, schema);
}

const schema = {
  description: "What SAFE reads, and what it publishes for other services.",
  oneOf: Object.keys(EVENTS).map((name) => ({ $ref: `#/$defs/${name}` })),
  $defs: definitions,
};
process.stdout.write(
  await compile(schema, "SafeRecord", {
    additionalProperties: false, // readers ignore fields that they do not know
    maxItems: -1, // "at most five" as an array, not as six tuples
    bannerComment: "// Made from the JSON Schemas of the events by `npm run types`; do not edit.",
    style: { printWidth: 120 },
  }),
);
