/** Values of `anthropic-beta` that the gateway itself sends. */

/** Opens `speed: "fast"`. */
export const fastModeBeta = 'fast-mode-2026-02-01';
