/**
 * The jobs on long bodies off the event loop: plain synchronous functions of plain data. Values never cross
 * between threads, only bytes, heads, notes, counts and the texts of an answer.
 */
import { type JsonSource, parseLongBody } from '../../core/client-body.ts';
import type { Conversation, DialectId, Origin, Part } from '../../core/conversation.ts';
import { type Countable, type PromptExcerpt, excerptOf } from '../../core/description.ts';
import type { AnswerContext, Ask, ClientDialect, RequestHead } from '../../core/dialect.ts';
import { GatewayError } from '../../core/errors.ts';
import type { Generation, Usage } from '../../core/generation.ts';
import { type RecalledTurn, PromptTrail } from '../../core/recall.ts';
import { type Note, NoteList, StrictNotes } from '../../core/notes.ts';
import type { NewId } from '../../core/runtime.ts';
import type { Sealer } from '../../core/secret.ts';
import type { StoredResponseCodec } from '../../core/stored-response.ts';
import type { ModelTokenizer } from '../../core/provider.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { clientDialect, upstreamDialect } from '../../dialects/registry.ts';
import { checkMedia, mayHoldMedia } from '../../dialects/shared/body/body-media.ts';
import { promptSpans, thinSkeleton } from '../../dialects/shared/body/thin-skeleton.ts';
import { tryParseObject } from '../../json/parse.ts';
import type { Span } from '../../json/scan.ts';
import { type Feature, featureBits } from '../../json/skeleton.ts';
import type { JsonObject } from '../../json/value.ts';
import { countPrompt, sampleJson, samplePrompt } from '../../tokens/prompt.ts';
import { parseAnswer, readAnswerDocument } from '../answer/answer-body.ts';
import { imagesIn } from '../call-size.ts';
import { type CountedBody, CountingBody } from '../count-tokens.ts';
import { type LearnedCorrection, correctionFor } from '../learned-parameters.ts';
import { addAsked, originKey, recallKey } from '../reasoning-memory.ts';
import { conversationForAnswer, upstreamBody } from '../upstream-request.ts';
import type { JobMessage, JobReply } from './body-thread.ts';
import {
  type SentError,
  type SentPiece,
  bufferOver,
  packed,
  receivedError,
  sentError,
  sentPieces,
  unpacked,
} from './transfer.ts';

/** The thread's data besides a job's input. */
interface JobTools {
  readonly newId: NewId;
  readonly sealer: Sealer;
  /** From 0 up to 1. */
  readonly random: () => number;
}

/** `Ask` without what only a thread itself has. */
export type PlainAsk = Omit<Ask, 'newId' | 'recall' | 'originOf' | 'sealer'>;

/** `AnswerContext` as plain data. */
export interface PlainContext extends Omit<AnswerContext, 'newId' | 'notes' | 'sealing'> {
  /** Present when the answer is sealed for the way back to this upstream. */
  readonly upstream?: Origin;
}

interface ClientInput {
  readonly client: DialectId;
}

export interface OpenInput extends ClientInput {
  /** It is a request to count tokens. */
  readonly counting: boolean;
  /** Its content goes into a trace. */
  readonly traced: boolean;
}

/** The data of a client's body that the event loop needs. */
export interface OpenedBody {
  /** Absent for a request to count. */
  readonly head?: RequestHead;
  readonly model: string;
  /** Of a traced one that the canonical form can hold. */
  readonly excerpt?: PromptExcerpt;
  /** JSON of `thinSkeleton`. */
  readonly skeleton: string;
  readonly tokens: number;
  readonly unambiguous: boolean;
  /** Bits of the features that it has (`featureBits`). */
  readonly features: number;
  /** By `RequestDescription.reasonsWithTools`. */
  readonly reasonsWithTools: boolean;
  /** Tokens of the prompt by a sample of its bytes. */
  readonly sample: number;
}

/** What only some calls need of a body: it is parsed for that. */
export interface PromptSize {
  /** The key of the conversation's beginning (`conversationKey` of routing.ts). */
  readonly opening: string;
  /** Tokens of the prompt by all of its characters, and by a sample of them. */
  readonly guess: number;
  readonly sample: number;
  readonly images: number;
}

export interface RequestInput {
  readonly client: DialectId;
  readonly upstream: DialectId;
  readonly ask: PlainAsk & { readonly provider: string };
  /** The first note is a refusal. */
  readonly strict: boolean;
  readonly answered?: readonly Part[] | undefined;
  /** The key whose turns may be recalled. */
  readonly keyId: string;
  /** Kept turns by their keys (`reasoning-memory.ts`); undefined = there are none at all. */
  readonly recalled?: ReadonlyMap<string, RecalledTurn> | undefined;
}

export interface MadeBody {
  readonly body: readonly SentPiece[];
  readonly stream: boolean;
  readonly scanned: readonly string[];
  readonly needed: readonly string[];
  readonly notes: readonly Note[];
  /** The data that writers of the answer read; absent if the client's own bytes are sent. */
  readonly conversation?: Conversation;
  /** Digest of what the users said (`PromptTrail`); absent where the body was not parsed. */
  readonly asked?: string;
  /** Keys of kept turns that were looked up and not in `recalled`. */
  readonly wanted: readonly string[];
}

/** The target cannot take this request. */
export interface RefusedBody {
  readonly refused: SentError;
  /** The earlier notes. */
  readonly notes: readonly Note[];
}

export interface CountJobInput {
  readonly client: DialectId;
  readonly upstream: DialectId;
  readonly ask: PlainAsk;
  readonly counting: boolean;
  /** Members that the steps of the provider's counter ask with. */
  readonly members: readonly string[];
  readonly tokenizer: ModelTokenizer | undefined;
}

export interface CountedLong {
  readonly bytes: readonly SentPiece[] | undefined;
  /** JSON of those of `members` that the body has. */
  readonly members: ReadonlyMap<string, Uint8Array>;
  readonly media: CountedBody['media'];
  readonly guess: number;
  readonly countable: Countable | undefined;
}

export interface ExpandInput {
  readonly client: DialectId;
  /** Items that references stand for, by their ids: JSON. */
  readonly found: ReadonlyMap<string, Uint8Array>;
  /** Arrays of items that go before its own; absent = the request stays as it is. */
  readonly before?: readonly Uint8Array[];
}

export interface ExpandedBody {
  /** The array of the request's own items. */
  readonly input: Uint8Array;
  readonly body: readonly SentPiece[];
}

/** The position of the response in the end of an answer (`StoredResponseCodec.answered`). */
export interface AnsweredRange extends Span {
  readonly id: string;
  readonly items: readonly string[];
}

export interface CorrectInput {
  readonly error: SentError;
  readonly traits: UpstreamTraits;
  /** The client's own body, or its skeleton. */
  readonly asked: JsonObject;
}

export interface ReadInput {
  readonly upstream: DialectId;
  readonly traits: UpstreamTraits;
  /** How many answers were requested. */
  readonly choices?: number | undefined;
  /** The document itself goes to the client: nothing of it is noted, and each requested answer must be complete. */
  readonly relayed?: boolean | undefined;
}

export interface ReadAnswer {
  readonly generation: Generation;
  /** The document's own bytes, given back. */
  readonly bytes: Uint8Array;
  /** Of what the generation cannot hold. */
  readonly notes: readonly Note[];
}

export interface AnswerInput {
  readonly client: DialectId;
  readonly context: PlainContext;
  /** The next step for the bytes, or for those written instead of them. */
  readonly make: MadeAnswer;
}

/** How the client's document is made. */
export type MadeAnswer =
  /** The upstream's own document, with this usage where it has none. */
  | { readonly from: 'relay'; readonly gap: Usage | undefined }
  /**
   * The upstream's document, read once more and written in the client's dialect with this usage: its texts do not cross
   * from the event loop, which has them, to the thread again.
   */
  | ({ readonly from: 'document'; readonly usage: Usage } & ReadInput)
  /** An answer that was put together of a stream. */
  | { readonly from: 'generation'; readonly generation: Generation };

export interface WrittenAnswer {
  readonly bytes: Uint8Array;
  readonly notes: readonly Note[];
  /** Ids of calls and how the client saw them. */
  readonly shown: readonly (readonly [id: string, shown: string])[];
}

/** Each job: its input and its result. The body of a job is transferred separately from its input. */
export interface Jobs {
  /** Reads and checks a client's body. @throws GatewayError */
  readonly open: { readonly input: OpenInput; readonly output: OpenedBody };
  /** Measures its prompt. */
  readonly size: { readonly input: ClientInput; readonly output: PromptSize };
  /** Makes the digest of what the users said (`PromptTrail`). */
  readonly asked: { readonly input: ClientInput; readonly output: string };
  /** Makes the body for one target. */
  readonly request: { readonly input: RequestInput; readonly output: MadeBody | RefusedBody };
  readonly count: { readonly input: CountJobInput; readonly output: CountedLong };
  /** Puts stored items into a request, and returns its own ones. */
  readonly expand: { readonly input: ExpandInput; readonly output: ExpandedBody };
  /** Finds the response in the last bytes of an answer. */
  readonly answered: {
    readonly input: ClientInput;
    readonly output: AnsweredRange | undefined;
  };
  /** The last bytes of an answer that says that its response was not stored. */
  readonly markUnstored: {
    readonly input: ClientInput;
    readonly output: { readonly bytes: Uint8Array };
  };
  /** Looks what an upstream refused of the body that it was sent. */
  readonly correct: {
    readonly input: CorrectInput;
    readonly output: LearnedCorrection | undefined;
  };
  /** Reads an upstream's document. @throws GatewayError `upstream_invalid` */
  readonly read: { readonly input: ReadInput; readonly output: ReadAnswer };
  /** Writes or relays a document for the client. */
  readonly answer: { readonly input: AnswerInput; readonly output: WrittenAnswer };
}

export type JobName = keyof Jobs;

/** A body as the thread has it. */
export class JobBody {
  readonly bytes: Buffer;
  #source: JsonSource | undefined;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** Read at the first call. @throws GatewayError as `parseLongBody` */
  source(ownedKeys: ReadonlySet<string> = noKeys): JsonSource {
    this.#source ??= parseLongBody(this.bytes, ownedKeys);
    return this.#source;
  }
}

const noKeys: ReadonlySet<string> = new Set();

type Work = {
  readonly [N in JobName]: (
    input: Jobs[N]['input'],
    body: JobBody,
    tools: JobTools,
  ) => Jobs[N]['output'];
};

const work: Work = {
  open,
  size,
  asked,
  request,
  count,
  expand,
  answered,
  markUnstored,
  correct,
  read,
  answer,
};

/** Does a job. @throws what its function throws. */
export function doJob<N extends JobName>(
  name: N,
  {
    input,
    body,
    tools,
  }: { readonly input: Jobs[N]['input']; readonly body: JobBody; readonly tools: JobTools },
): Jobs[N]['output'] {
  return work[name](input, body, tools);
}

function open({ client: id, counting, traced }: OpenInput, body: JobBody): OpenedBody {
  const client = clientDialect(id);
  const source = body.source(client.ownedKeys);
  const { skeleton } = source;
  client.names.check(source);
  if (mayHoldMedia(source)) checkMedia(skeleton, client.fault);
  const head = counting ? undefined : client.readHead(skeleton);
  const model = head?.model ?? client.count?.readModel(skeleton) ?? '';
  const excerpt = traced ? tryExcerpt(client, source) : undefined;
  return {
    ...(excerpt === undefined ? {} : { excerpt }),
    ...(head === undefined ? {} : { head }),
    model,
    skeleton: JSON.stringify(thinSkeleton(skeleton)),
    tokens: source.tokens,
    unambiguous: source.unambiguous,
    features: allFeatures.reduce(
      (bits, each) => (source.has(each) ? bits | featureBits[each] : bits),
      0,
    ),
    reasonsWithTools: client.describe(source).reasonsWithTools(),
    sample: sampleJson(
      promptSpans(source.spans).map(({ start, end }) => source.bytes.subarray(start, end)),
    ),
  };
}

function size({ client: id }: ClientInput, body: JobBody, { random }: JobTools): PromptSize {
  const client = clientDialect(id);
  const asks = client.describe(body.source(client.ownedKeys));
  const prompt = asks.prompt();
  return {
    opening: asks.opening(),
    guess: countPrompt(prompt, random),
    sample: samplePrompt(prompt),
    images: imagesIn(prompt),
  };
}

function asked({ client: id }: ClientInput, body: JobBody): string {
  const client = clientDialect(id);
  const source = body.source(client.ownedKeys);
  return new PromptTrail((trail) =>
    addAsked(trail, { dialect: client, source }, undefined),
  ).digest();
}

function tryExcerpt(client: ClientDialect, { value }: JsonSource): PromptExcerpt | undefined {
  try {
    return excerptOf(client.readRequest(value, new NoteList()));
  } catch {
    // A relayed request may say what the canonical form cannot hold.
    return undefined;
  }
}

const allFeatures: readonly Feature[] = [
  'escape',
  'media',
  'cacheControl',
  'hour',
  'address',
  'sealed',
];

function request(input: RequestInput, body: JobBody, tools: JobTools): MadeBody | RefusedBody {
  const notes = new NoteList();
  try {
    return made(input, { body, tools, notes });
  } catch (error) {
    return { refused: sentError(error), notes: notes.all };
  }
}

/** @throws GatewayError for a request that the upstream cannot take, StrictRefusal */
function made(
  input: RequestInput,
  {
    body,
    tools: { newId, sealer },
    notes,
  }: { readonly body: JobBody; readonly tools: JobTools; readonly notes: NoteList },
): MadeBody {
  const { keyId, recalled, answered } = input;
  const [client, upstream] = [clientDialect(input.client), upstreamDialect(input.upstream)];
  const wanted: string[] = [];
  const find = (key: () => string): RecalledTurn | undefined => {
    if (recalled === undefined) return undefined;
    const turn = recalled.get(key());
    if (turn === undefined) wanted.push(key());
    return turn;
  };
  const source = body.source(client.ownedKeys);
  const written = upstreamBody({
    client,
    upstream,
    source,
    answered,
    notes: input.strict ? new StrictNotes() : notes,
    ask: {
      ...input.ask,
      newId,
      sealer,
      recall: (call, asked) => find(() => recallKey(keyId, call, asked)),
      originOf: (said) => find(() => originKey(keyId, said))?.origin,
    },
  });
  const { conversation, ...rest } = written;
  const sent = { ...rest, body: sentPieces(written.body, body.bytes), notes: notes.all, wanted };
  if (conversation === undefined) return sent;
  const said = new PromptTrail((trail) =>
    addAsked(trail, { dialect: client, source }, conversation),
  );
  return { ...sent, conversation: conversationForAnswer(conversation), asked: said.digest() };
}

function count(
  input: CountJobInput,
  body: JobBody,
  { newId, sealer, random }: JobTools,
): CountedLong {
  const [client, upstream] = [clientDialect(input.client), upstreamDialect(input.upstream)];
  const source = body.source(client.ownedKeys);
  const ask = { ...input.ask, newId, sealer };
  const { counting, members, tokenizer } = input;
  const counted = new CountingBody({
    client,
    upstream,
    source,
    ask,
    counting,
    random,
  });
  const { bytes } = counted;
  return {
    bytes: bytes && sentPieces(bytes, body.bytes),
    members: new Map(
      members.flatMap((name) => {
        const text = counted.member(name);
        return text === undefined ? [] : [[name, text] as const];
      }),
    ),
    media: counted.media,
    guess: counted.guess,
    countable: tokenizer && counted.countable(tokenizer),
  };
}

function expand({ client: id, found, before }: ExpandInput, body: JobBody): ExpandedBody {
  const stored = codecOf(id);
  const source = body.source(clientDialect(id).ownedKeys);
  const items = new Map([...found].map(([item, bytes]) => [item, bufferOver(bytes)]));
  const input = stored.inputOf(source, items);
  const expanded = before && stored.expand(source, [...before.map(bufferOver), input]);
  return { input: new Uint8Array(input), body: expanded ? sentPieces(expanded, body.bytes) : [] };
}

function answered(
  { client }: Jobs['answered']['input'],
  { bytes }: JobBody,
): AnsweredRange | undefined {
  const found = codecOf(client).answered(bytes);
  if (found === undefined) return undefined;
  const { id, items, response } = found;
  const start = response.byteOffset - bytes.byteOffset;
  return { id, items, start, end: start + response.length };
}

function markUnstored(
  { client }: Jobs['markUnstored']['input'],
  { bytes }: JobBody,
): Jobs['markUnstored']['output'] {
  return { bytes: codecOf(client).markUnstored(bytes) };
}

function codecOf(id: DialectId): StoredResponseCodec {
  const { stored } = clientDialect(id);
  if (stored === undefined) throw new TypeError(`Nothing is kept for ${id}.`);
  return stored;
}

function correct(
  { error, traits, asked }: CorrectInput,
  body: JobBody,
): LearnedCorrection | undefined {
  const refusal = receivedError(error);
  const sent = tryParseObject(body.bytes.toString('utf8'));
  if (sent === undefined || !(refusal instanceof GatewayError)) return undefined;
  return correctionFor({ error: refusal, sent, traits, asked });
}

function read({ upstream, traits, choices, relayed }: ReadInput, { bytes }: JobBody): ReadAnswer {
  const notes = relayed === true ? undefined : new NoteList();
  const dialect = upstreamDialect(upstream);
  const { generation } = readAnswerDocument(bytes, dialect, { traits, notes, choices });
  return { generation, bytes, notes: notes?.all ?? [] };
}

function answer(
  { client: id, context: plain, make }: AnswerInput,
  { bytes }: JobBody,
  { newId, sealer }: JobTools,
): WrittenAnswer {
  const client = clientDialect(id);
  const notes = new NoteList();
  const shown: (readonly [string, string])[] = [];
  const { upstream, ...rest } = plain;
  const callShown = (own: string, seen: string): void => void shown.push([own, seen]);
  const sealing = upstream === undefined ? {} : { sealing: { sealer, upstream, callShown } };
  const context: AnswerContext = { ...rest, newId, notes, ...sealing };
  const written =
    make.from === 'relay'
      ? client.answerRelay(context).document({ bytes, body: parseAnswer(bytes) }, make.gap)
      : Buffer.from(JSON.stringify(client.writeResponse(generationOf(make, bytes), context)));
  return { bytes: written, notes: notes.all, shown };
}

function generationOf(make: Exclude<MadeAnswer, { from: 'relay' }>, bytes: Buffer): Generation {
  if (make.from === 'generation') return make.generation;
  const { upstream, traits, usage } = make;
  return { ...readAnswerDocument(bytes, upstreamDialect(upstream), { traits }).generation, usage };
}

// The thread's side of a job: finds its body, does it, and makes an answer that can be sent.

interface AnsweredJob {
  readonly reply: JobReply<unknown>;
  /** Memory that goes with the reply. */
  readonly moved: readonly ArrayBuffer[];
}

export class JobRunner {
  readonly #tools: JobTools;
  /** The body of the last job that said that it is needed again. */
  #stored: { readonly id: number; readonly body: JobBody } | undefined;
  /** Bytes that nothing refers to once the reply is sent. */
  #used: Uint8Array | undefined;

  constructor(tools: JobTools) {
    this.#tools = tools;
  }

  /** Never throws. */
  answer({ name, input, id, bytes, keep }: JobMessage): AnsweredJob {
    const stored = this.#stored?.id === id ? this.#stored.body : undefined;
    if (stored === undefined && this.#stored !== undefined) this.forget(this.#stored.id);
    this.#stored = undefined;
    const body = bytes === undefined ? stored : new JobBody(bufferOver(bytes));
    this.#used = keep ? undefined : body?.bytes;
    try {
      if (body === undefined) throw new Error(`The body of the job "${name}" is not here.`);
      const output = packed(doJob(name, { input: unpacked(input), body, tools: this.#tools }));
      if (keep) this.#stored = { id, body };
      return { reply: { output }, moved: memoryOf(output) };
    } catch (error) {
      this.#used = body?.bytes;
      return { reply: { error: sentError(error) }, moved: [] };
    }
  }

  forget(id: number): void {
    if (this.#stored?.id !== id) return;
    this.#used = this.#stored.body.bytes;
    this.#stored = undefined;
    this.free();
  }

  /** Lets go of the last job's bytes at once: waiting for the collector would hold many bodies of megabytes (G5). */
  free(): void {
    const memory = this.#used?.buffer;
    this.#used = undefined;
    if (memory instanceof ArrayBuffer && !memory.detached) memory.transfer(0);
  }
}

/** The memory of all bytes that are in an output, or in a list or a map of it. */
function memoryOf(output: unknown): readonly ArrayBuffer[] {
  if (typeof output !== 'object' || output === null) return [];
  const found = new Set<ArrayBuffer>();
  for (const value of Object.values(output)) {
    for (const each of Array.isArray(value) || value instanceof Map ? value.values() : [value]) {
      if (!(each instanceof Uint8Array) || !(each.buffer instanceof ArrayBuffer)) continue;
      // Buffers that share their memory with others are copied.
      if (each.byteLength === each.buffer.byteLength) found.add(each.buffer);
    }
  }
  return [...found];
}
