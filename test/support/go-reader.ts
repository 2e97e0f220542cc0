/** What a server written in Go takes a request for: by a small program where Go is there, else by its rules. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { temporaryFolder } from './folders.ts';

/** The members that the program reads (`go-reader/main.go`); `any` keeps its value. */
const any = 'any';
type Form = typeof any | { readonly [name: string]: Form };
const part: Form = {
  type: any,
  text: any,
  image_url: { url: any },
  source: { type: any, url: any },
};
const form: Form = {
  model: any,
  max_tokens: any,
  max_completion_tokens: any,
  stream: any,
  n: any,
  system: any,
  service_tier: any,
  models: any,
  fallbacks: any,
  plugins: any,
  messages: { role: any, content: part },
  input: { role: any, content: { type: any, text: any, image_url: any } },
  max_output_tokens: any,
  reasoning: { effort: any },
  tools: { type: any, model: any },
  stream_options: { include_usage: any },
  thinking: { type: any, budget_tokens: any },
};

/** What each body says to who reads names exactly. Bodies have no key twice. */
export function readExactly(body: JsonObject): Json {
  return read(body, form, (name) => name);
}

/**
 * The same for who reads them as Go's `encoding/json`: without case, by Unicode's simple folding, and the last one wins.
 * Beside their own cases, letters of ASCII have two that fold to them.
 */
export function readFolded(body: JsonObject): Json {
  return read(body, form, (name) =>
    name.replace(/[A-Z\u017f\u212a]/g, (letter) =>
      letter === '\u017f' ? 's' : letter === '\u212a' ? 'k' : letter.toLowerCase(),
    ),
  );
}

function read(value: Json, shape: Form, nameOf: (name: string) => string): Json {
  if (shape === any) return value;
  if (Array.isArray(value)) return value.map((item: Json) => read(item, shape, nameOf));
  if (!isObject(value)) return value;
  const found: { [name: string]: Json } = {};
  for (const [name, item] of Object.entries(value)) {
    const known = nameOf(name);
    const inner = shape[known];
    if (inner !== undefined && item !== undefined) found[known] = read(item, inner, nameOf);
  }
  return found;
}

/** What the program makes of each body, one a line; undefined where there is no Go. */
export function readByGo(bodies: readonly Buffer[]): readonly JsonObject[] | undefined {
  const program = builtProgram();
  if (program === undefined) return undefined;
  const input = Buffer.concat(bodies.flatMap((body) => [body, Buffer.from('\n')]));
  const run = spawnSync(program, { input, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (run.status !== 0) throw new Error(run.stderr);
  return run.stdout
    .trimEnd()
    .split('\n')
    .map((line): JsonObject => JSON.parse(line));
}

let built: string | undefined;

/** Compiles the program once for all tests of this process. */
function builtProgram(): string | undefined {
  if (built !== undefined) return built;
  const folder = temporaryFolder('go-reader');
  const program = join(folder, 'reader');
  const source = join(import.meta.dirname, 'go-reader', 'main.go');
  const env = { ...process.env, GOTOOLCHAIN: 'local', GOPROXY: 'off', GO111MODULE: 'off' };
  const build = spawnSync('go', ['build', '-o', program, source], { env, encoding: 'utf8' });
  if (build.error !== undefined) return undefined;
  if (build.status !== 0) throw new Error(build.stderr);
  built = program;
  return built;
}
