/** A library's program (`programs/`) in a box: what it printed, and what the upstream was asked. */
import assert from 'node:assert/strict';
import { copyFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { clientKey } from '../support/keys.ts';
import type { Answer, Received } from '../upstream/scripted.ts';
import { answerOf } from './answers.ts';
import { openBox } from './box.ts';
import type { Step } from './scene.ts';
import type { Stage } from './stage.ts';
import type { Wire } from './turn.ts';

export interface Act {
  /** What runs a program of that folder; for Node, the packages that it imports. */
  readonly runner: readonly string[];
  readonly packages?: string;
  readonly program: string;
  /** What the program is to do. */
  readonly name: string;
  readonly upstream: Wire;
  /** What requests get, one after the other; the last one for ever. */
  readonly steps: readonly Step[];
}

export interface Acted {
  /** What the program printed. */
  readonly told: JsonObject;
  /** Bodies of the requests to the upstream. */
  readonly bodies: readonly JsonObject[];
  /** The ledger's rows, in order. */
  readonly calls: readonly JsonObject[];
}

const programs = join(import.meta.dirname, 'programs');

/** Of a messages upstream; counting is no call. */
function isCount({ path }: Received): boolean {
  return path.endsWith('/count_tokens');
}

/** Runs the program to its end. Only `/v1/responses` is asked, and nothing but the gateway. */
export async function act(
  stage: Stage,
  { runner, packages, program, name, upstream, steps }: Act,
): Promise<Acted> {
  let at = 0;
  const { model, script } = stage.play(upstream, (request: Received): Answer => {
    if (isCount(request)) return { body: '{"input_tokens":12}' };
    const step = steps[Math.min(at++, steps.length - 1)] ?? { text: 'nothing planned' };
    return 'answer' in step
      ? step.answer
      : answerOf(upstream, step, request.json['stream'] === true);
  });
  const box = await openBox(stage.gateway.url);
  try {
    // Packages are found from where the file is.
    const file = join(box.project, program);
    await copyFile(join(programs, program), file);
    if (packages !== undefined) await symlink(packages, join(box.project, 'node_modules'));
    const env = { GATEWAY: `${stage.gateway.url}/v1`, KEY: clientKey, MODEL: model };
    const ran = await box.run([...runner, file, name], { env });
    const told = tryParseObject(ran.out);
    assert.ok(ran.code === 0 && told !== undefined, `${ran.out}\n${ran.err}`);
    assert.deepEqual(box.tried, [], 'nothing beyond the gateway');
    const others = box.asked.filter((line) => !/^\w+ \/v1\/responses\b/.test(line));
    assert.deepEqual(others, [], 'nothing but responses');
    const bodies = script.requests.filter((each) => !isCount(each)).map(({ json }) => json);
    const calls = bodies.length === 0 ? [] : await stage.gateway.callsAfter(model, bodies.length);
    return { told, bodies, calls: calls.toReversed() };
  } finally {
    await box.close();
  }
}
