/**
 * Responses that later requests refer to (docs/user/responses.md): stored in the gateway's own store on any upstream, and
 * put back into a request as whole items.
 */
import { hkdfSync } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw, type ZlibOptions } from 'node:zlib';
import type {
  EndedResponse,
  StoredResponse,
  StoredResponseCodec,
} from '../../core/stored-response.ts';
import { GatewayError } from '../../core/errors.ts';
import type { RequestState } from '../../core/dialect.ts';
import type { Later, Log } from '../../core/runtime.ts';
import type {
  ChainLimits,
  Refusal,
  ResponseChain,
  ResponseStore,
  ResponseToKeep,
  SealedResponse,
} from '../../store/sealed.ts';
import { StoreError } from '../../store/store-error.ts';
import { type SealKey, openBytes, sealBytes, sealKey } from '../sealed-bytes.ts';

/** Whose responses. */
export interface ResponseOwner {
  readonly keyId: string;
  /** The API key as the client presented it. */
  readonly secret: string;
}

export interface ResponseSettings {
  readonly store: 'on' | 'off';
  readonly keepMs: number;
  readonly totalBytes: number;
}

/** What became of responses that were to be stored; each counts up from the start. */
type ResponseTallies = {
  kept: number;
  /** Longer than what is stored. */
  large: number;
  /** The store did not take it, or not in time. */
  failed: number;
};

interface StoredResponsesDeps {
  readonly store: ResponseStore;
  /** The gateway's own secret; undefined where there is none. */
  readonly contentKey: () => Uint8Array | undefined;
  readonly log: Log;
  readonly later: Later;
  readonly random: (count: number) => Uint8Array;
  /** The current ones: a reload replaces them. */
  readonly settings: () => ResponseSettings;
  /** Called after each large amount of stored bytes, since the limit may be exceeded. */
  readonly manyStored: () => void;
}

/** What a request refers to. */
export interface Referred {
  /** Arrays of items, in their order. */
  readonly before: readonly Buffer[];
  /** Items by their ids. */
  readonly found: ReadonlyMap<string, Buffer>;
}

export interface ResponseToStore extends EndedResponse {
  readonly input: Buffer;
  /** Ids of items of the input. */
  readonly inputIds: readonly string[];
  readonly previous: string | undefined;
  readonly startedAt: number;
}

/** What a look-up may take. */
export interface LookUp {
  readonly dialect: StoredResponseCodec;
  /** How many bytes the expanded request may have. */
  readonly bytes: number;
  /**
   * Reserves memory for this number of bytes in total. It is called before a response is unpacked, and before more than
   * `unreservedBytes` are read. @throws GatewayError `overloaded`
   */
  hold(bytes: number): void;
}

interface KeyOfOwner {
  readonly of: string;
  readonly root: Uint8Array | string;
  readonly key: SealKey;
}

const maxLinks = 1000;
/** Of one response, with its items. */
const maxResponseBytes = 4 * 1024 * 1024;
/** Any key can name ids that never were, so few are remembered. The time is twice the default of `timeouts.total`. */
const refusal: Refusal = { ms: 3_600_000, most: 1000 };
/**
 * The sealed bytes that are read without a reservation. If a response is longer, each further try reads `readGrowth`
 * times as many.
 */
const unreservedBytes = 256 * 1024;
const readGrowth = 8;
const ivBytes = 12;
const ivsAtOnce = 64;
const indexed = /^[A-Za-z0-9_-]{1,64}$/;

export class StoredResponses {
  readonly tallies: ResponseTallies = { kept: 0, large: 0, failed: 0 };
  readonly #deps: StoredResponsesDeps;
  readonly #queue: StoreQueue;
  #storedSinceSweep = 0;
  #ivs: Uint8Array = new Uint8Array();
  /** The last key that was derived: deriving takes longer than sealing. */
  #key: KeyOfOwner | undefined;

  constructor(deps: StoredResponsesDeps) {
    this.#deps = deps;
    this.#queue = new StoreQueue(deps.store, deps.later);
  }

  get on(): boolean {
    return this.#deps.settings().store === 'on';
  }

  /**
   * What the state of a request names.
   * @throws GatewayError for what is unknown, or too much; `store_unavailable`, `overloaded`
   */
  async resolve(
    owner: ResponseOwner,
    { previousResponseId: previous, itemReferences }: RequestState,
    lookUp: LookUp,
  ): Promise<Referred> {
    const { dialect, bytes } = lookUp;
    const found = await this.#items(owner, itemReferences, lookUp);
    if (previous === undefined) return { before: [], found };
    const held = [...found.values()].reduce((sum, { length }) => sum + length, 0);
    const chain = await this.chain(owner, previous, {
      ...lookUp,
      hold: (more) => lookUp.hold(held + more),
    });
    if (chain === undefined) throw dialect.unknownResponse(previous, this.on);
    const before = chain.flatMap(({ input, response }) => [input, dialect.outputOf(response)]);
    if (before.reduce((sum, array) => sum + array.length, 0) > bytes) throw tooLong(bytes);
    return { before, found };
  }

  /**
   * Stores a response.
   * @returns false for one of a call that began before its key's content was removed, and for one that was deleted before its end: it is dropped
   * @throws StoreError
   */
  async keep(owner: ResponseOwner, response: ResponseToStore): Promise<boolean> {
    const { settings } = this.#deps;
    const { id, input, inputIds, previous, startedAt } = response;
    const rowId = { id, keyId: owner.keyId };
    const sealing = { key: this.#keyOf(owner), iv: this.#nextIv() };
    const sealed = await sealResponse({ input, response: response.response }, rowId, sealing);
    const items = [...new Set([...response.items, ...inputIds])].filter((item) =>
      indexed.test(item),
    );
    const { keepMs } = settings();
    const row = { ...rowId, previous, sealed, items, startedAt, keepMs };
    const kept = await this.#queue.add(row);
    if (!kept) return false;
    this.tallies.kept += 1;
    this.#storedSinceSweep += sealed.length;
    if (this.#storedSinceSweep >= settings().totalBytes / 16) {
      this.#storedSinceSweep = 0;
      this.#deps.manyStored();
    }
    return true;
  }

  /** Counts and logs a response that could not be stored. */
  failed(reason: string): void {
    this.tallies.failed += 1;
    this.#deps.log.warn('response_not_kept', { reason });
  }

  /** Whether a response of these parts is short enough. */
  fits(input: Buffer, response: Buffer): boolean {
    if (input.length + response.length <= maxResponseBytes) return true;
    this.tallies.large += 1;
    return false;
  }

  /** Undefined for what is unknown, over, or another key's. @throws GatewayError `store_unavailable`, `overloaded` */
  async find(
    owner: ResponseOwner,
    id: string,
    { hold }: Pick<LookUp, 'hold'>,
  ): Promise<StoredResponse | undefined> {
    const limits = { links: 1, bytes: 2 * maxResponseBytes };
    const { responses } = await this.#chainOf(owner, id, { limits, hold });
    const [found] = responses;
    return found && this.#opened(owner, found, hold);
  }

  /** The sealed responses of a chain. Memory is reserved before more than a little is read. */
  #chainOf(
    { keyId }: ResponseOwner,
    id: string,
    { limits, hold }: { readonly limits: ChainLimits } & Pick<LookUp, 'hold'>,
  ): Promise<ResponseChain> {
    return readMore(limits.bytes, hold, async (bytes) => {
      const limited = { links: limits.links, bytes };
      const found = await this.#asked(this.#deps.store.chain(keyId, id, limited));
      return { found, isAll: found.end !== 'long' || found.responses.length === limits.links };
    });
  }

  /**
   * The response with those before it, the oldest first; undefined as `find`.
   * @throws GatewayError where one before it is not there any more; `too_large`; `store_unavailable`, `overloaded`
   */
  async chain(
    owner: ResponseOwner,
    id: string,
    { dialect, bytes, hold }: LookUp,
  ): Promise<readonly StoredResponse[] | undefined> {
    const limits = { links: maxLinks, bytes };
    const { responses, end } = await this.#chainOf(owner, id, { limits, hold });
    if (end === 'long') throw tooLong(bytes);
    const opened: StoredResponse[] = [];
    let sum = 0;
    let continues: string | undefined;
    for (const each of responses) {
      const response = await this.#opened(owner, each, (size) => {
        sum += size;
        if (sum > 2 * bytes) throw tooLong(bytes);
        hold(sum);
      });
      if (response === undefined) break;
      opened.push(response);
      continues = each.previous;
    }
    const last = opened.at(-1);
    if (last === undefined) return undefined;
    if (continues !== undefined) throw dialect.brokenChain(last.id, continues);
    return opened.toReversed();
  }

  /**
   * False when there was none. @throws GatewayError `store_unavailable`: it is still there
   * @param mayBeRunning its stream may still run: then it is not stored at its end
   */
  remove({ keyId }: ResponseOwner, id: string, mayBeRunning: boolean): Promise<boolean> {
    const refused = mayBeRunning && this.on ? refusal : undefined;
    return this.#asked(this.#deps.store.remove(keyId, id, refused), (reason) => {
      this.#deps.log.warn('response_not_removed', { reason });
      return `The gateway cannot delete stored responses now; '${id}' is still kept. Retry later.`;
    });
  }

  async #items(
    owner: ResponseOwner,
    ids: readonly string[],
    { dialect, bytes, hold }: LookUp,
  ): Promise<ReadonlyMap<string, Buffer>> {
    const found = new Map<string, Buffer>();
    if (ids.length === 0) return found;
    const wanted = [...new Set(ids)];
    const named = new Set(wanted.flatMap((id) => dialect.responseOf(id) ?? []));
    const { places: owners, responses } = await readMore(bytes, hold, async (most) => {
      const asking = this.#deps.store.holding(owner.keyId, [...wanted, ...named], most);
      const holding = await this.#asked(asking);
      const holders = new Set(holding.places.map(([, response]) => response));
      return { found: holding, isAll: holders.size === holding.responses.length };
    });
    const ownerOf = new Map(owners);
    const responseOf = (id: string): string | undefined =>
      ownerOf.get(id) ?? ownerOf.get(dialect.responseOf(id) ?? '');
    const read = new Set(responses.map(({ id }) => id));
    let sum = 0;
    let copied = 0;
    for (const sealed of responses) {
      const opened = await this.#opened(owner, sealed, (size) => hold((sum += size)));
      if (opened === undefined) continue;
      const items = dialect.itemsOf(opened);
      for (const id of wanted) {
        const item = responseOf(id) === sealed.id ? items.get(id) : undefined;
        if (item === undefined) continue;
        copied += item.length;
        if (copied > bytes) throw tooLong(bytes);
        // A part of the opened response would keep all of it in memory.
        found.set(id, Buffer.from(item));
      }
    }
    for (const id of wanted) {
      if (found.has(id)) continue;
      const response = responseOf(id);
      if (response !== undefined && !read.has(response)) throw tooLong(bytes);
      throw dialect.unknownItem(id, this.on);
    }
    return found;
  }

  /** @param mayUnpack called with the size that the response will have */
  async #opened(
    owner: ResponseOwner,
    sealed: SealedResponse,
    mayUnpack: (bytes: number) => void,
  ): Promise<StoredResponse | undefined> {
    const opened = await openResponse(sealed, this.#keyOf(owner), mayUnpack);
    return opened && { ...opened, id: sealed.id };
  }

  /** Random bytes for one seal. One system call returns those of many seals, and takes as long as for one. */
  #nextIv(): Uint8Array {
    if (this.#ivs.length === 0) this.#ivs = this.#deps.random(ivBytes * ivsAtOnce);
    const iv = this.#ivs.subarray(0, ivBytes);
    this.#ivs = this.#ivs.subarray(ivBytes);
    return iv;
  }

  /** A shared store without a common secret is opened by the client's own key only. */
  #keyOf({ keyId, secret }: ResponseOwner): SealKey {
    const root = this.#deps.contentKey() ?? secret;
    if (this.#key?.of !== keyId || this.#key.root !== root) {
      this.#key = { of: keyId, root, key: responseKey(root, keyId) };
    }
    return this.#key.key;
  }

  /** @param failed logs why the store failed; returns the message for the client */
  async #asked<T>(asking: Promise<T>, failed = this.#notLookedUp): Promise<T> {
    try {
      return await asking;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      throw new GatewayError('store_unavailable', failed(error.message));
    }
  }

  readonly #notLookedUp = (reason: string): string => {
    this.#deps.log.warn('response_not_found', { reason });
    return 'The gateway cannot look up stored responses now; retry later. Nothing was sent to a model.';
  };
}

/** Reads again with a higher limit, which is reserved before, until everything was read or the limit is reached. */
async function readMore<T>(
  bytes: number,
  hold: LookUp['hold'],
  read: (most: number) => Promise<{ readonly found: T; readonly isAll: boolean }>,
): Promise<T> {
  for (let most = Math.min(bytes, unreservedBytes); ; most = Math.min(bytes, readGrowth * most)) {
    if (most > unreservedBytes) hold(most);
    const { found, isAll } = await read(most);
    if (isAll || most === bytes) return found;
  }
}

function tooLong(bytes: number): GatewayError {
  return new GatewayError(
    'too_large',
    `The request and the earlier responses that it refers to are larger than ${bytes} bytes, or more than ${maxLinks} responses. Begin a new conversation, or send fewer items in \`input\` without \`previous_response_id\`.`,
    { path: ['previous_response_id'] },
  );
}

// A response as a store holds it: packed, and sealed with a key that is in no store (docs/user/responses.md).
// Where the gateways of a shared store have no common secret, the key comes out of the client's own API key.

/** What is stored of one call. JSON bytes. */
export interface OpenedResponse {
  /** The array of the request's own items. */
  readonly input: Buffer;
  /** The response object. */
  readonly response: Buffer;
}

type RowId = Pick<SealedResponse, 'id' | 'keyId'>;

const pack = promisify<Buffer, ZlibOptions, Buffer>(deflateRaw);
const unpack = promisify(inflateRaw);
const keyBytes = 32;
/** A shorter one takes little room, and packing it would take longer than all else that is done to keep it. */
const packedFrom = 16_384;
/** Of zlib: a third of the time of its default, for a tenth more bytes. */
const packing = { level: 1 };
/** The first byte of what is sealed says what comes after it: the parts, or their length and the packed parts. */
const form = { plain: 0, packed: 2 };

/** The key that seals the responses of one API key. @param root the gateway's secret or the client's key */
export function responseKey(root: Uint8Array | string, keyId: string): SealKey {
  return sealKey(new Uint8Array(hkdfSync('sha256', root, keyId, 'kept responses', keyBytes)));
}

/** @param iv 12 random bytes, other ones each time. */
export async function sealResponse(
  { input, response }: OpenedResponse,
  rowId: RowId,
  { key, iv }: { readonly key: SealKey; readonly iv: Uint8Array },
): Promise<Buffer> {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(input.length, 1);
  const plain = Buffer.concat([head, input, response]);
  if (plain.length < packedFrom) return sealBytes(plain, boundTo(rowId), { key, iv });
  const parts = plain.subarray(1);
  head[0] = form.packed;
  head.writeUInt32BE(parts.length, 1);
  const marked = Buffer.concat([head, await pack(parts, packing)]);
  return sealBytes(marked, boundTo(rowId), { key, iv });
}

/**
 * Undefined for bytes that another key sealed, that belong to another row, or that were changed since.
 * @param mayUnpack called with the size of the result before it is unpacked; what it throws is passed on
 */
export async function openResponse(
  { sealed, ...rowId }: SealedResponse,
  key: SealKey,
  mayUnpack: (bytes: number) => void,
): Promise<OpenedResponse | undefined> {
  const opened = openBytes(sealed, boundTo(rowId), key);
  if (!(opened instanceof Uint8Array)) return undefined;
  const plain = await partsOf(opened, mayUnpack);
  if (plain === undefined) return undefined;
  const end = 4 + plain.readUInt32BE();
  return { input: plain.subarray(4, end), response: plain.subarray(end) };
}

/** Undefined for a form of an earlier version. */
async function partsOf(
  opened: Buffer,
  mayUnpack: (bytes: number) => void,
): Promise<Buffer | undefined> {
  if (opened[0] === form.plain) {
    mayUnpack(opened.length - 5);
    return opened.subarray(1);
  }
  if (opened[0] !== form.packed) return undefined;
  const length = opened.readUInt32BE(1);
  mayUnpack(length - 4);
  return unpack(opened.subarray(5), { maxOutputLength: length });
}

function boundTo({ id, keyId }: RowId): string {
  return `response ${keyId} ${id}`;
}

// Responses on their way into the store, several at once: a write of its own would cost a call more than the call.

/** From one write to the next, at the least. A response that comes after a pause is written at once. */
const betweenWritesMs = 10;
const maxAtOnce = 64;
const maxBytesAtOnce = 4 * 1024 * 1024;

interface Waiting {
  readonly response: ResponseToKeep;
  resolve(kept: boolean): void;
  reject(error: unknown): void;
}

export class StoreQueue {
  readonly #store: Pick<ResponseStore, 'keep'>;
  readonly #later: Later;
  #waiting: Waiting[] = [];
  #busy = false;

  constructor(store: Pick<ResponseStore, 'keep'>, later: Later) {
    this.#store = store;
    this.#later = later;
  }

  /** As the store's `keep`. @throws StoreError; then none of those written together was stored */
  add(response: ResponseToKeep): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ response, resolve, reject });
      if (!this.#busy) void this.#write();
    });
  }

  async #write(): Promise<void> {
    this.#busy = true;
    const pause = Promise.withResolvers<void>();
    this.#later(betweenWritesMs, pause.resolve);
    const batch = this.#next();
    try {
      const kept = await this.#store.keep(batch.map(({ response }) => response));
      for (const [at, { resolve }] of batch.entries()) resolve(kept[at] === true);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    await pause.promise;
    this.#busy = false;
    if (this.#waiting.length > 0) void this.#write();
  }

  #next(): readonly Waiting[] {
    let bytes = 0;
    const end = this.#waiting.findIndex(({ response }, at) => {
      bytes += response.sealed.length;
      return at === maxAtOnce || (at > 0 && bytes > maxBytesAtOnce);
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }
}
