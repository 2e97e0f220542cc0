/** Bodies that an upstream compressed although identity was asked for (reliability.md F32, F33). */
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from 'node:zlib';
import type { Transform } from 'node:stream';
import { GatewayError } from '../core/errors.ts';

/** More than this out of one compressed body is a bomb. */
export const maxDecompressedBytes = 64 * 1024 * 1024;
/** How many times larger it may become, once it is large enough to matter. */
const maxRatio = 100;
const ratioFromBytes = 1024 * 1024;

export interface DecompressorHandler {
  data(chunk: Buffer): void;
  end(): void;
  failed(error: GatewayError): void;
}

/** Feeds compressed chunks in, gives plain chunks to the handler. */
export class Decompressor {
  readonly #stream: Transform;
  #taken = 0;
  #received = 0;
  #failed = false;

  constructor(stream: Transform, handler: DecompressorHandler) {
    this.#stream = stream;
    const fail = (why: string): void => {
      if (this.#failed) return;
      this.#failed = true;
      stream.destroy();
      handler.failed(new GatewayError('upstream_invalid', why));
    };
    stream.on('data', (chunk: Buffer) => {
      this.#received += chunk.length;
      if (this.#received > maxDecompressedBytes)
        fail('The upstream sent a compressed body beyond 64 MiB.');
      else if (this.#received > ratioFromBytes && this.#received > this.#taken * maxRatio)
        fail('The upstream sent a compressed body that grows more than a hundredfold.');
      else if (!this.#failed) handler.data(chunk);
    });
    stream.on('end', () => {
      if (!this.#failed) handler.end();
    });
    stream.on('error', () => fail('The upstream sent a body that cannot be decompressed.'));
  }

  /** Returns false when the caller should pause until `drained`. */
  write(chunk: Buffer, drained: () => void): boolean {
    if (this.#failed) return true;
    this.#taken += chunk.length;
    const ready = this.#stream.write(chunk);
    if (!ready) this.#stream.once('drain', drained);
    return ready;
  }

  end(): void {
    this.#stream.end();
  }

  /** Holds the plain side back; `resume` continues it. */
  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  destroy(): void {
    this.#failed = true;
    this.#stream.destroy();
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
