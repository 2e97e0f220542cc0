/** Headers of a call that mean something here or go on to an upstream (reliability.md B67–B71). */
import type { IncomingMessage } from 'node:http';
import { invalidRequest } from '../core/errors.ts';

type Header = (name: string) => string | undefined;

const betaForm = /^[A-Za-z0-9._-]{1,128}$/;
const versionForm = /^[A-Za-z0-9._-]{1,64}$/;
const maxBetas = 50;
/** Visible ASCII and spaces within. */
const keyForm = /^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/;

/**
 * Refuses values that no upstream could read, so that none is sent on.
 * @throws GatewayError `invalid_request`.
 */
export function checkClientHeaders(header: Header): void {
  const version = header('anthropic-version');
  if (version !== undefined && version !== '' && !versionForm.test(version)) {
    throw invalidRequest('The header anthropic-version is no version, such as 2023-06-01.');
  }
  const betas = header('anthropic-beta');
  if (betas !== undefined && betas !== '') checkBetas(betas);
  const key = header('idempotency-key');
  if (key !== undefined && !keyForm.test(key)) {
    throw invalidRequest('The header idempotency-key must have 1 to 255 characters of ASCII.');
  }
}

function checkBetas(text: string): void {
  const betas = new Set(text.split(',').map((beta) => beta.trim()));
  if (betas.size > maxBetas) {
    throw invalidRequest(`The header anthropic-beta names more than ${maxBetas} values.`);
  }
  for (const beta of betas) {
    if (beta !== '' && !betaForm.test(beta)) {
      throw invalidRequest('The header anthropic-beta holds a value that is no name.');
    }
  }
}

/** A header of a request; one that came several times is joined by commas. */
export function headerValue(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(',') : value;
}
