/** The paths of the data plane that need a key. */
import type { ClientDialect } from '../core/dialect.ts';

export interface ClientDialects {
  readonly chat: ClientDialect;
  readonly messages: ClientDialect;
}

export const countPath = '/v1/messages/count_tokens';
export const modelsPath = '/v1/models';
/** What else needs a key, and calls no model. */
export const sidePaths: readonly string[] = [countPath, modelsPath];

/** All paths on which models are called, each with its dialect (K4). */
export function generatingPaths(dialects: ClientDialects): ReadonlyMap<string, ClientDialect> {
  return new Map(
    [dialects.chat, dialects.messages].flatMap((dialect) =>
      dialect.paths.map((path) => [path, dialect] as const),
    ),
  );
}
