/** Bodies that an upstream compressed although identity was requested. */
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from 'node:zlib';
import type { Transform } from 'node:stream';
import { GatewayError } from '../core/errors.ts';

/** A compressed body that decompresses to more is rejected. */
export const maxDecompressedBytes = 64 * 1024 * 1024;
/** Highest ratio of decompression, above `ratioFromBytes`. */
const maxRatio = 100;
const ratioFromBytes = 1024 * 1024;

export interface DecompressorHandler {
  data(chunk: Buffer): void;
  end(): void;
  failed(error: GatewayError): void;
}

/** Takes compressed chunks, and gives decompressed chunks to the handler. */
export class Decompressor {
  readonly #stream: Transform;
  readonly #handler: DecompressorHandler;
  #taken = 0;
  #received = 0;
  #over = false;
  /** Decompressed data that was not taken yet when the stream broke. */
  #rest: Buffer | undefined;
  #behind: (() => void) | undefined;
  /** A destroyed stream ignores `resume()` and says that it is paused. */
  #paused = false;

  constructor(stream: Transform, handler: DecompressorHandler) {
    this.#stream = stream;
    this.#handler = handler;
    stream.on('data', (chunk: Buffer) => {
      this.#handOver(chunk);
      this.#endBehind();
    });
    stream.on('end', () => {
      if (!this.#over) handler.end();
    });
    stream.on('error', () => this.#broken());
  }

  /** @returns false when the caller must pause until `drained`. */
  write(chunk: Buffer, drained: () => void): boolean {
    if (this.#over) return true;
    this.#taken += chunk.length;
    const ready = this.#stream.write(chunk, () => this.#endBehind());
    if (!ready) this.#stream.once('drain', drained);
    return ready;
  }

  end(): void {
    this.#stream.end();
  }

  /** Nothing more is written: calls back once when all written data was handed over. */
  behind(then: () => void): void {
    this.#behind ??= then;
    this.#endBehind();
  }

  /** Pauses the output. */
  pause(): void {
    this.#paused = true;
    this.#stream.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#stream.resume();
    const rest = this.#rest;
    this.#rest = undefined;
    if (rest !== undefined) this.#handOver(rest);
    this.#endBehind();
  }

  destroy(): void {
    this.#over = true;
    this.#stream.destroy();
  }

  #handOver(chunk: Buffer): void {
    if (this.#over) return;
    this.#received += chunk.length;
    if (this.#received > maxDecompressedBytes)
      this.#fail('The upstream sent a compressed body beyond 64 MiB.');
    else if (this.#received > ratioFromBytes && this.#received > this.#taken * maxRatio)
      this.#fail('The upstream sent a compressed body that grows more than a hundredfold.');
    else this.#handler.data(chunk);
  }

  /** The stream hands over nothing more by itself, not even what it holds. */
  #broken(): void {
    const held: Buffer[] = [];
    // One `read()` returns all of it in Node 24, and one chunk in Node 26.
    for (let chunk: unknown; Buffer.isBuffer((chunk = this.#stream.read()));) held.push(chunk);
    if (held.length > 0) this.#rest = Buffer.concat(held);
    this.behind(() => this.#fail('The upstream sent a body that cannot be decompressed.'));
  }

  #endBehind(): void {
    const stream = this.#stream;
    if (this.#over || this.#behind === undefined || this.#paused) return;
    if (!stream.destroyed && (stream.writableLength > 0 || stream.readableLength > 0)) return;
    const then = this.#behind;
    this.#behind = undefined;
    then();
    this.destroy();
  }

  #fail(why: string): void {
    if (this.#over) return;
    this.destroy();
    this.#handler.failed(new GatewayError('upstream_invalid', why));
  }
}

/**
 * A decompressor for a `content-encoding`; undefined for identity.
 * @throws GatewayError `upstream_invalid` for an encoding that is not known.
 */
export function decompressor(
  encoding: string,
  handler: DecompressorHandler,
): Decompressor | undefined {
  switch (encoding.trim().toLowerCase()) {
    case '':
    case 'identity':
      return undefined;
    case 'gzip':
    case 'x-gzip':
      return new Decompressor(createGunzip(), handler);
    case 'deflate':
      return new Decompressor(createInflate(), handler);
    case 'br':
      return new Decompressor(createBrotliDecompress(), handler);
    case 'zstd':
      return new Decompressor(createZstdDecompress(), handler);
    default:
      throw new GatewayError('upstream_invalid', 'The upstream used an unknown content-encoding.');
  }
}
