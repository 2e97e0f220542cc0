/** Refusals of requests that name something which is not there, or not for them (E5–E7). */
import type { Principal } from '../access/principal.ts';
import { GatewayError } from '../core/errors.ts';

/** So much of a name or path is repeated to whoever sent it. */
export const maxNameLength = 256;

/** @throws GatewayError `forbidden` when the key may not use the endpoint of this name. */
export function requireScope(principal: Principal, scope: string): void {
  if (principal.allowsEndpoint(scope)) return;
  throw new GatewayError('forbidden', 'This key may not use this endpoint.');
}

/** One answer for unknown models and those that the key may not use (E6). */
export function unknownModel(model: string): GatewayError {
  const shown = model.length > maxNameLength ? `${model.slice(0, maxNameLength)}…` : model;
  return new GatewayError(
    'model_not_found',
    `The model "${shown}" does not exist or this key may not use it.`,
    {
      path: ['model'],
    },
  );
}

export function notFound(path: string): GatewayError {
  const shown = path.length > maxNameLength ? `${path.slice(0, maxNameLength)}…` : path;
  return new GatewayError(
    'route_not_found',
    `There is no endpoint ${shown}. The base address ends in /v1; see POST /v1/chat/completions and POST /v1/messages.`,
  );
}

export class MethodNotAllowed extends GatewayError {
  /** Value of the `allow` header. */
  readonly allow: string;

  constructor(allow: string) {
    super('method_not_allowed', `This endpoint takes ${allow} only.`);
    this.allow = allow;
  }
}

/** @throws GatewayError as for a name that does not exist. */
export function requireModels(principal: Principal, names: readonly string[]): void {
  for (const name of names) if (!principal.allowsModel(name)) throw unknownModel(name);
}

/** What a path takes, for `allow`. */
export function allowedMethods(path: string): string {
  if (!path.startsWith('/v1/')) return 'GET, HEAD';
  return path.startsWith('/v1/models') ? 'GET' : 'POST';
}
