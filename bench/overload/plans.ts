/**
 * What the upstream of the overload runs answers, by the name of the model: `unary`;
 * `stream-CHUNKS-RATE` or `stream-CHUNKS-RATE-TOGETHER`, paced: RATE writes a second of TOGETHER chunks
 * each (1); `hold-RATE`, paced until the parent says the end; `flood`, a stream without an end.
 */
import { chunkMark, streamFrames, type StreamFrames } from '../bodies.ts';
import type { Dialect } from '../protocol.ts';

/** Is in each content, before the ms at which it was written. */
export const stampMark = '@';
/** Digits behind the mark: ms since the epoch with three decimals, without the point. */
export const stampDigits = 16;

const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';

export interface Plan {
  readonly opening: Buffer;
  /** Pieces between two closings. */
  readonly writes: number;
  /** Contents in one piece. */
  readonly together: number;
  readonly perSecond: number;
  /** One piece, written now. */
  piece(): Buffer;
  /** Ends a stream after this number of contents, and reports them as output tokens. */
  closing(contents: number): Buffer;
}

const plans = new Map<string, Plan>();

/** Undefined: the model is none of streams with an end. */
export function planOf(dialect: Dialect, model: string): Plan | undefined {
  const [kind, ...numbers] = model.split('-');
  if (kind !== 'stream' && kind !== 'hold') return undefined;
  const name = `${dialect} ${model}`;
  const known = plans.get(name);
  if (known !== undefined) return known;
  const [chunks = 0, perSecond = 1, together = 1] =
    kind === 'hold' ? [Number.POSITIVE_INFINITY, Number(numbers[0])] : numbers.map(Number);
  const plan = makePlan(dialect, { chunks, perSecond, together });
  plans.set(name, plan);
  return plan;
}

interface Pace {
  readonly chunks: number;
  readonly perSecond: number;
  readonly together: number;
}

function makePlan(dialect: Dialect, { chunks, perSecond, together }: Pace): Plan {
  const frames = streamFrames(dialect, 0);
  const [before = '', behind = ''] = (frames.contents[0] ?? '').split(chunkMark);
  return {
    opening: Buffer.from(streamHead + frames.opening.map(chunked).join('')),
    writes: Math.ceil(chunks / together),
    together,
    perSecond,
    piece: () => {
      const stamp = Math.round((performance.timeOrigin + performance.now()) * 1000);
      const frame = `${before}${chunkMark}${stampMark}${stamp} ${behind}`;
      return Buffer.from(chunked(frame.repeat(together)));
    },
    closing: (contents) => closingOf(streamFrames(dialect, contents)),
  };
}

function closingOf({ closing }: StreamFrames): Buffer {
  return Buffer.from(`${closing.map(chunked).join('')}0\r\n\r\n`);
}

export function chunked(frame: string): string {
  return `${Buffer.byteLength(frame).toString(16)}\r\n${frame}\r\n`;
}
