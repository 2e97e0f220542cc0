/** Keeps the answers of one batch apart while their next tokens are chosen. */
import { EngineUnavailable } from './library.ts';

/** What the library's context calls of its native half. */
interface NativeContext {
  decodeBatch(): Promise<unknown>;
  sampleToken(...args: readonly unknown[]): Promise<unknown>;
}

/**
 * Chooses the first token of a batch alone, and only then the others. llama.cpp leaves the logits of a
 * batch in the order in which it computed them, and moves each row to its place at the first look
 * (`output_reorder`, ggml-org/llama.cpp pull request 14853). The library looks from several threads at
 * once, so that two moved the same rows: an answer got a token of another one's.
 *
 * @param context a `LlamaContext`; its native half is not a part of the library's interface
 * @throws EngineUnavailable when the library has become another one
 */
export function keepLogitsApart(context: object): void {
  const native: unknown = Reflect.get(context, '_ctx');
  if (!isNativeContext(native)) {
    throw new EngineUnavailable(
      'The installed node-llama-cpp is of another version than this gateway needs; run npm ci.',
    );
  }
  const decode = native.decodeBatch.bind(native);
  const sample = native.sampleToken.bind(native);
  let first: Promise<unknown> | undefined;
  const decodeBatch: NativeContext['decodeBatch'] = () => {
    first = undefined;
    return decode();
  };
  const sampleToken: NativeContext['sampleToken'] = async (...args) => {
    if (first === undefined) return (first = sample(...args));
    await first.catch(() => undefined);
    return sample(...args);
  };
  // Native methods cannot be assigned over.
  Object.defineProperties(native, {
    decodeBatch: { value: decodeBatch },
    sampleToken: { value: sampleToken },
  });
}

function isNativeContext(value: unknown): value is NativeContext {
  return (
    typeof value === 'object' &&
    value !== null &&
    ['decodeBatch', 'sampleToken'].every((name) => typeof Reflect.get(value, name) === 'function')
  );
}
