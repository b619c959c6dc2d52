// Prints, as JSON, what the official parser reads in each AsyncAPI document that is named, and what it finds wrong.
import { Parser, fromFile } from "@asyncapi/parser";

const parser = new Parser();

async function read(file) {
  const { document, diagnostics } = await fromFile(parser, file).parse();
  const messages = (document?.allMessages().all() ?? []).map((message) => ({
    id: message.id(),
    payload: message.payload()?.json() ?? null,
    headers: message.headers()?.json() ?? null,
    examples: message.examples().all().map((example) => ({
      headers: example.headers() ?? null,
      payload: example.payload() ?? null,
    })),
  }));
  const found = diagnostics.map(({ code, message, path, severity }) => ({ code, message, path, severity }));
  return { version: document?.version() ?? null, messages, diagnostics: found };
}

const documents = [];
for (const file of process.argv.slice(2)) documents.push(await read(file));
console.log(JSON.stringify(documents));
