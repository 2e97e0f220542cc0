/** What both ways of reading a body (`json.ts`, `json-steps.ts`) know of JSON's bytes, and their limits. */
import { GatewayError, invalidRequest } from './errors.ts';

/** Where a top-level member stands in the bytes; `end` is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export const maxDepth = 128;
/** Brackets that open, commas and colons: what a body costs to parse goes by them (G11). */
export const maxTokens = 500_000;
/** What is longer, or has more tokens, is parsed in steps: all others wait for a parse (G11). */
export const maxBytesAtOnce = 1024 * 1024;
export const maxTokensAtOnce = 20_000;
export const maxKeyLength = 1024;
/** No number that means something is longer; a megabyte of digits costs as much as one of text. */
export const maxDigits = 1024;

export const quote = 0x22;
export const backslash = 0x5c;

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

export function skipSpace(bytes: Buffer, from: number): number {
  let i = from;
  while (i < bytes.length && isSpace(bytes[i])) i += 1;
  return i;
}

export function trimEnd(bytes: Buffer, end: number): number {
  let i = end;
  while (i > 0 && isSpace(bytes[i - 1])) i -= 1;
  return i;
}

/** Whether the quote at `end` closes the string; `from` stands behind no half of an escape. */
export function isClosing(bytes: Buffer, end: number, from: number): boolean {
  let slashes = 0;
  while (end - 1 - slashes >= from && bytes[end - 1 - slashes] === backslash) slashes += 1;
  return slashes % 2 === 0;
}

export function tooDeep(): GatewayError {
  return new GatewayError(
    'too_large',
    `The request body is nested more than ${maxDepth} levels deep.`,
  );
}

export function tooMany(): GatewayError {
  return new GatewayError('too_large', `The request body has more than ${maxTokens} JSON values.`);
}

export function longNumber(): GatewayError {
  return invalidRequest(`A number in the request body has more than ${maxDigits} digits.`);
}

/** V8's message quotes the content, which may be a secret: only the position is told. */
export function notJson({
  line,
  column,
}: {
  readonly line: number;
  readonly column: number;
}): GatewayError {
  return invalidRequest(`The request body is not valid JSON (line ${line}, column ${column}).`);
}
