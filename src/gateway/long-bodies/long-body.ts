/** A client's body that is too long to be read on the event loop: its bytes, and what the worker thread found in it. */
import type { JsonObject } from '../../json/value.ts';
import type { RequestHead } from '../../core/dialect.ts';
import { featureBits, type Feature } from '../../json/skeleton.ts';
import { tryParseObject } from '../../json/parse.ts';
import type { Span } from '../../json/scan.ts';
import type { JsonSource } from '../../core/client-body.ts';
import type { PromptExcerpt } from '../../core/prompt-excerpt.ts';
import type { Pieces } from '../../json/pieces.ts';
import type { BodyOfJob, LongBodies } from './body-thread.ts';
import type { OpenedBody, OpenInput } from './jobs.ts';

const noSpans: ReadonlyMap<string, Span> = new Map();

export class LongBody implements JsonSource, BodyOfJob {
  readonly id: number;
  readonly pieces: Pieces;
  /** Bounded: prompts are left out (`thin-skeleton.ts`). */
  readonly skeleton: JsonObject;
  readonly tokens: number;
  readonly unambiguous: boolean;
  readonly spans = noSpans;
  readonly bodyStart = 0;
  /** Absent in a request to count tokens. */
  readonly head: RequestHead | undefined;
  readonly model: string;
  readonly opening: string;
  readonly prompt: OpenedBody['prompt'];
  readonly excerpt: PromptExcerpt | undefined;
  readonly #features: number;

  constructor(id: number, pieces: Pieces, opened: OpenedBody) {
    this.id = id;
    this.pieces = pieces;
    this.skeleton = tryParseObject(opened.skeleton) ?? {};
    this.tokens = opened.tokens;
    this.unambiguous = opened.unambiguous;
    this.head = opened.head;
    this.model = opened.model;
    this.opening = opened.opening;
    this.prompt = opened.prompt;
    this.excerpt = opened.excerpt;
    this.#features = opened.features;
  }

  get bytes(): Buffer {
    return this.pieces.whole();
  }

  /** @throws TypeError always: the value is in the worker thread only. */
  get value(): JsonObject {
    throw new TypeError('The value of a long body is not read on the event loop.');
  }

  has(feature: Feature): boolean {
    return (this.#features & featureBits[feature]) !== 0;
  }

  lacks(): boolean {
    return false;
  }

  forget(): void {
    // There is no value here.
  }
}

/**
 * Has a body read in the worker thread.
 * @param wanted whether its client is still there
 * @throws GatewayError as the dialect refuses it, `overloaded`, `canceled`
 */
export async function openLongBody(
  bodies: LongBodies,
  pieces: Pieces,
  { wanted, ...input }: OpenInput & { readonly wanted: () => boolean },
): Promise<LongBody> {
  const id = bodies.nextId();
  const opened = await bodies.run('open', input, { id, pieces, wanted });
  return new LongBody(id, pieces, opened);
}
