/** Code and other things that are loaded at most once. */

/** Loads once for all callers. A failure is forgotten, so that the next call tries again. */
export function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

/** Fetches code before it is needed; a failure is shown when it is needed. */
export function prefetch(load: () => Promise<unknown>): void {
  load().catch(() => undefined);
}
