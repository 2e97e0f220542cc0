/** W3C Trace Context (level 2): reads `traceparent` and `tracestate`, decides on sampling, writes them on. */
import type { CallTrace } from '../../core/trace.ts';

/** Who starts traces, and which of them are told. */
export interface Sampling {
  /** Share of the traces that begin here, 0 to 1. */
  readonly ratio: number;
  /** Whether a client's trace goes on, and its sampled flag decides. */
  readonly followsParent: boolean;
  /** Whether prompts and answers are told. Default false. */
  readonly content?: boolean;
}

interface Parent {
  readonly traceId: string;
  readonly spanId: string;
  readonly flags: number;
}

const sampledFlag = 1;
/** The trace id is random: those who sample by it may rely on that (level 2). */
const randomFlag = 2;
const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const zeros = /^0+$/;
const stateForm = /^[\x20-\x7e]{1,512}$/;
const mostStateMembers = 32;

/** @param newHex makes so many random hex digits. */
export function beginTrace(
  { ratio, followsParent, content = false }: Sampling,
  newHex: (digits: number) => string,
  headers: { readonly parent: string | undefined; readonly state: string | undefined },
): CallTrace {
  const parent = followsParent ? readParent(headers.parent) : undefined;
  if (parent === undefined) {
    const traceId = newHex(32);
    const flags = randomFlag | (isSampled(traceId, ratio) ? sampledFlag : 0);
    return new TraceOfCall({ traceId, spanId: newHex(16), flags, content, newHex });
  }
  return new TraceOfCall({
    traceId: parent.traceId,
    spanId: newHex(16),
    parentId: parent.spanId,
    state: readState(headers.state),
    flags: parent.flags & (sampledFlag | randomFlag),
    content,
    newHex,
  });
}

/** Undefined for everything that is no valid header: such a call begins a trace of its own. */
export function readParent(text: string | undefined): Parent | undefined {
  if (text === undefined) return undefined;
  const [, version = 'ff', traceId = '', spanId = '', flags = '', rest] = form.exec(text) ?? [];
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (zeros.test(traceId) || zeros.test(spanId)) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

function readState(text: string | undefined): string | undefined {
  if (text === undefined || !stateForm.test(text)) return undefined;
  return text.split(',').length > mostStateMembers ? undefined : text;
}

/** By the last 56 bits of the id, so that all who take the same share take the same traces. */
function isSampled(traceId: string, ratio: number): boolean {
  if (ratio >= 1) return true;
  return Number.parseInt(traceId.slice(18), 16) < ratio * 2 ** 56;
}

interface TraceParts {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string;
  readonly state?: string | undefined;
  readonly flags: number;
  readonly content: boolean;
  readonly newHex: (digits: number) => string;
}

class TraceOfCall implements CallTrace {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string;
  readonly state?: string;
  readonly #flags: number;
  readonly #content: boolean;
  readonly #newHex: (digits: number) => string;

  constructor({ traceId, spanId, parentId, state, flags, content, newHex }: TraceParts) {
    this.traceId = traceId;
    this.spanId = spanId;
    if (parentId !== undefined) this.parentId = parentId;
    if (state !== undefined) this.state = state;
    this.#flags = flags;
    this.#content = content;
    this.#newHex = newHex;
  }

  get sampled(): boolean {
    return (this.#flags & sampledFlag) !== 0;
  }

  get content(): boolean {
    return this.#content && this.sampled;
  }

  newSpanId(): string {
    return this.#newHex(16);
  }

  headers(spanId: string): readonly string[] {
    const flags = this.#flags.toString(16).padStart(2, '0');
    const parent = ['traceparent', `00-${this.traceId}-${spanId}-${flags}`];
    return this.state === undefined ? parent : [...parent, 'tracestate', this.state];
  }
}
