/** Judges of bodies: the published schemas of chat completions and the SDKs' own types. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { temporaryFolder } from './folders.ts';

const root = join(import.meta.dirname, '../..');
const schemaFile = join(root, '../shared/schemas/openai-chat-and-responses.json');

/** Why the published schemas are not asked, or undefined where they are. */
export const whyNoSchemas = existsSync(schemaFile)
  ? undefined
  : 'left out: there are no schemas at ../shared/schemas';

/** What a body does wrong by a schema of the chat API; `''` = nothing. */
export type Judge = (body: Json) => string;

/** @param name of a schema in the published document, as `CreateChatCompletionRequest`. */
export function schemaJudge(name: string): Judge {
  if (whyNoSchemas !== undefined) return () => '';
  // Not the gateway's own parser, which keeps the digits of huge numbers as text.
  const document: unknown = JSON.parse(readFileSync(schemaFile, 'utf8'));
  if (!isObject(document)) throw new Error(`${schemaFile} holds no object`);
  const ajv = new Ajv({ strict: false, allErrors: false, validateFormats: false });
  ajv.addSchema(asJsonSchema(document), 'api');
  const validate: ValidateFunction = ajv.compile({ $ref: `api#/components/schemas/${name}` });
  return (body) => (validate(body) ? '' : ajv.errorsText(validate.errors));
}

/**
 * OpenAPI says `nullable` where JSON Schema has a type or an alternative. Of several alternatives that fit, as those of
 * messages in a responses request do, the discriminator picks one: any of them will do.
 */
function asJsonSchema(value: JsonObject): JsonObject {
  const own = Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'nullable' && key !== 'discriminator')
      .map(([key, each]) => [key === 'oneOf' ? 'anyOf' : key, schemaPart(each)]),
  );
  return value['nullable'] === true ? { anyOf: [own, { type: 'null' }] } : own;
}

function schemaPart(value: Json | undefined): Json | undefined {
  if (Array.isArray(value)) return value.map((each: Json) => schemaPart(each) ?? null);
  return isObject(value) ? asJsonSchema(value) : value;
}

/** A value with the type that it must have, as an expression of `Types` below. */
export interface Typed {
  /** What a complaint calls it. */
  readonly name: string;
  readonly type: string;
  readonly value: Json;
}

/** Stands at the beginning of each file that is type-checked. */
export const typesHead = `
import type OpenAI from 'openai';
import type * as Beta from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type * as Stable from '@anthropic-ai/sdk/resources/messages/messages';
import type * as Older from '@anthropic-ai/sdk-0/resources/messages/messages';
export type { OpenAI, Beta, Stable, Older };
`;

/**
 * Type-checks values as literals, so that unknown members are errors as well.
 * @returns one line for each complaint.
 */
export function typeComplaints(values: readonly Typed[], more = ''): readonly string[] {
  const folder = temporaryFolder('types');
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const lines = values.map(
    ({ type, value }, i) => `export const v${i}: ${type} = ${JSON.stringify(value)};`,
  );
  const head = typesHead + more;
  writeFileSync(join(folder, 'values.ts'), head + lines.join('\n'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { types: [], noUnusedLocals: false },
      include: ['values.ts'],
    }),
  );
  const before = head.split('\n').length - 1;
  return compile(folder).map((line) => {
    const [, at = '0'] = /^values\.ts\((\d+),/.exec(line) ?? [];
    const { name = 'the head of the file' } = values[Number(at) - before - 1] ?? {};
    return `${name}: ${line}`;
  });
}

function compile(folder: string): readonly string[] {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  try {
    execFileSync(process.execPath, [tsc, '-p', folder], { cwd: folder, encoding: 'utf8' });
    return [];
  } catch (error) {
    const said = isObject(error) ? String(Reflect.get(error, 'stdout')) : String(error);
    const lines = said.split('\n').filter((line) => line.startsWith('values.ts('));
    return lines.length === 0 ? [said] : lines;
  }
}
