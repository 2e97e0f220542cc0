/** A library's program (`programs/`) in a sandbox: its report of each act, and the requests that the upstream got. */
import assert from 'node:assert/strict';
import { copyFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { clientKey } from '../support/keys.ts';
import type { Answer, Received } from '../upstream/scripted.ts';
import { answerOf } from './answers.ts';
import { openBox, type Box, type Talk } from './box.ts';
import type { Step } from './scene.ts';
import type { Stage } from './stage.ts';
import type { Wire } from './turn.ts';

/** What runs a program of that folder; for Node, the packages that it imports. */
export interface Library {
  readonly name: string;
  readonly runner: readonly string[];
  readonly packages?: string;
  readonly program: string;
}

export interface Act {
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

/** One process of the program for all acts: a library takes a second or two to load. */
export class Actor {
  readonly #stage: Stage;
  readonly #box: Box;
  readonly #talk: Talk;

  private constructor(stage: Stage, box: Box, talk: Talk) {
    this.#stage = stage;
    this.#box = box;
    this.#talk = talk;
  }

  static async start(stage: Stage, { runner, packages, program }: Library): Promise<Actor> {
    const box = await openBox(stage.gateway.url);
    // Packages are found from where the file is.
    const file = join(box.project, program);
    await copyFile(join(programs, program), file);
    if (packages !== undefined) await symlink(packages, join(box.project, 'node_modules'));
    const env = { GATEWAY: `${stage.gateway.url}/v1`, KEY: clientKey };
    return new Actor(stage, box, box.talk([...runner, file], env));
  }

  /** Plays an act to its end. Only `/v1/responses` is asked, and nothing but the gateway. */
  async act({ name, upstream, steps }: Act): Promise<Acted> {
    let at = 0;
    const { model, script } = this.#stage.play(upstream, (request: Received): Answer => {
      if (isCount(request)) return { body: '{"input_tokens":12}' };
      const step = steps[Math.min(at++, steps.length - 1)] ?? { text: 'nothing planned' };
      return 'answer' in step
        ? step.answer
        : answerOf(upstream, step, request.json['stream'] === true);
    });
    const line = await this.#talk.ask(JSON.stringify({ name, model }));
    const told = tryParseObject(line);
    assert.ok(told !== undefined, line);
    assert.deepEqual(this.#box.tried, [], 'nothing beyond the gateway');
    const others = this.#box.asked.filter((each) => !/^\w+ \/v1\/responses\b/.test(each));
    assert.deepEqual(others, [], 'nothing but responses');
    const bodies = script.requests.filter((each) => !isCount(each)).map(({ json }) => json);
    const { gateway } = this.#stage;
    const calls = bodies.length === 0 ? [] : await gateway.callsAfter(model, bodies.length);
    return { told, bodies, calls: calls.toReversed() };
  }

  async close(): Promise<void> {
    try {
      await this.#talk.close();
    } finally {
      await this.#box.close();
    }
  }
}
