/** Which requirement is proven where. Tests begin with the ids that they prove; each requirement has a test. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { filesOfRun, withImports } from './support/test-runs.ts';

/** What users of gateways suffered from, each as what must hold, by theme and number: A1 … H6. */
const requirements: { readonly [theme: string]: readonly string[] } = {
  A: [
    'a message with the role system inside messages is served by every model',
    'reminders that a client puts into a conversation do not move the cached prefix',
    'a system message in mid-conversation does not break calls of tools on local models',
    'unknown members of new client versions are not refused',
    'a beta that a provider does not know is not sent to it',
    'the attribution header of Claude Code does not change the prefix that local models cache',
    'count_tokens is served, with a query string too',
    'a base address with or without /v1 works, and HEAD is answered',
    'a stream does not fail so that the client falls back to a document',
    'web search of the client does not fail through the gateway',
    'models appear in the lists that clients read',
    'a system prompt as a list of blocks is read',
  ],
  B: [
    'parallel and interleaved tool calls keep their arguments',
    'images in results of tools reach the model',
    'no empty text block is sent',
    'each call has one result',
    'results stand right behind their calls',
    'ids of calls have the form of the client, and are unique',
    'ids and names that are too long for the other side are shortened and found again',
    'schemas of tools are accepted by every provider',
    'the cap on the answer has the name that the model takes',
    'calls of Ollama-like servers are read',
    'an answer with calls ends as one',
    'a call that was cut at the token limit does not end as a complete one',
    'refusals and content filters are told as such',
    'reasoning is asked for in the form of the target',
    'chunks have the form that the official SDKs read',
    'every pair of dialects has a translation',
  ],
  C: [
    'the first characters of a block are kept when the kind of content changes',
    'a delta goes to a block of its own kind',
    'a block is ended before the next one begins',
    'the model in the answer is the one that the client asked for',
  ],
  D: [
    'signatures of reasoning come back byte for byte',
    'reasoning that is a signature only is kept',
    'reasoning stands before the calls that it led to, after a change of the provider too',
    'late signatures and redacted reasoning are kept',
    'signatures of Gemini come back on their calls',
    'reasoning_content comes back to the models that demand it',
    'reasoning is read under each name that vendors give it, and is never shown as text',
  ],
  E: [
    'characters that are cut between chunks stay whole',
    'silent streams are kept alive',
    'comments of upstreams are not passed on as data',
    'an upstream that closes in mid-answer is an error',
    'an error inside a stream with status 200 is an error',
    'usage is sent once, and only to who asked for it',
    'usage is found wherever it comes',
    'an exception in a stream ends one call and not the process',
    'the encoding of an answer is the one that its headers name',
    'a client that leaves ends its upstream request',
    'upstreams that only stream, or never do, serve both kinds of calls',
  ],
  F: [
    'message_start and the last event have the tokens of the prompt',
    'cached tokens are counted once',
    'cached tokens are counted on every path',
    'tokens of reasoning are output',
    'a count of tokens is exact, or says that it is an estimate',
    'an unknown price is not zero',
    'a call whose client left is charged what it used',
    'each call has one row',
  ],
  G: ['cache marks are kept in translation', 'the same conversation gives the same bytes'],
  H: [
    'errors have the form of the dialect of the client',
    'retry-after and the headers of rate limits are kept or made',
    'overload is told in the words of the dialect',
    'a refusal of an upstream keeps its status',
    'messages of limits name the limit',
    'bodies with images are not refused for their size',
  ],
};

/**
 * Tests of docs/guarantees.md: its lines have ids of their own (B1–B75 bad input, E1–E18 the error table, F1–F95 faults,
 * G1–G17 load), which look like requirements and prove other things.
 */
const othersIds = [
  'test/inputs/doors.test.ts',
  'test/inputs/bad-bodies.test.ts',
  'test/inputs/byte-rows.ts',
  'test/inputs/field-rows.ts',
  'test/inputs/conversation-rows.ts',
  'test/inputs/framing-rows.ts',
  'test/inputs/request-rows.ts',
  'test/inputs/raw.test.ts',
  'test/inputs/media-rows.ts',
  'test/inputs/limit-rows.ts',
  'test/unit/access/presented-key.test.ts',
  'test/unit/access/keys.test.ts',
  'test/faults/timeouts.test.ts',
  'test/faults/call-limit.test.ts',
  'test/faults/stop.test.ts',
  'test/contract/count-tokens.test.ts',
];

const root = join(import.meta.dirname, '..');

/** The names of tests, suites and rows: what stands in quotes behind `test(`, `describe(`, `id:`, `name:`. */
const named =
  /(?:\b(?:test|describe|it)\(\s*|\b(?:id|name):\s*|Row\(\s*)(['"`])((?:(?!\1)[^\\\n]|\\.)*)\1/g;
/** Keys of tables whose rows become tests. */
const keyed = /^\s*(['"`])((?:[A-H]\d{1,2} )+.*?)\1(?:: |,$)/gm;

interface Named {
  readonly file: string;
  readonly name: string;
}

/** @param tests files of a run; what they import is a part of them */
function namesIn(tests: Iterable<string>): readonly Named[] {
  const files = [...withImports(tests)].filter(
    (file) => !othersIds.includes(file) && file !== 'test/requirements.test.ts',
  );
  return files.sort().flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return [...text.matchAll(named), ...text.matchAll(keyed)].map((found) => ({
      file,
      name: found[2] ?? '',
    }));
  });
}

/** Names begin with the ids that they prove; ranges (`D1-D7`) name all that they span. */
function idsOf(name: string): readonly string[] {
  const ids: string[] = [];
  for (const [, theme = '', from = '', to = from] of name.matchAll(
    /\b([A-H])(\d{1,2})(?:[-–]\1?(\d{1,2}))?\b/g,
  )) {
    for (let at = Number(from); at <= Number(to); at += 1) ids.push(`${theme}${at}`);
  }
  return ids;
}

describe('requirements', () => {
  const provenBy = new Map<string, Set<string>>();
  for (const { file, name } of namesIn(filesOfRun().keys())) {
    for (const id of idsOf(name)) {
      const files = provenBy.get(id) ?? new Set();
      provenBy.set(id, files.add(file));
    }
  }
  for (const [theme, sentences] of Object.entries(requirements)) {
    for (const [i, sentence] of sentences.entries()) {
      const id = `${theme}${i + 1}`;
      test(`${id} ${sentence}`, (context) => {
        const files = [...(provenBy.get(id) ?? [])];
        assert.ok(files.length > 0, `no test is named ${id}`);
        context.diagnostic(files.join(' '));
      });
    }
  }
});

/** Requirements on `/v1/responses`; the names of their tests say what each is. */
const responsesRows = 84;
/** What only installed agents, or gateways on one store, can show: the rest of the tests has them. */
const beyond = [1, 2, 5, 9, 10, 11, 18, 21, 25, 29].map((row) => `R-${row}`);

test('R-1 to R-84 are each named by a test', () => {
  const inRun = idsIn(namesIn(filesOfRun().keys()));
  const inAll = idsIn(namesIn(filesOfRun('--all').keys()));
  const ids = Array.from({ length: responsesRows }, (_, i) => `R-${i + 1}`);
  assert.deepEqual(
    ids.filter((id) => !inRun.has(id)),
    beyond,
  );
  assert.deepEqual(
    ids.filter((id) => !inAll.has(id)),
    [],
  );
});

function idsIn(names: readonly Named[]): ReadonlySet<string> {
  return new Set(names.flatMap(({ name }) => name.match(/\bR-\d{1,2}\b/g) ?? []));
}
