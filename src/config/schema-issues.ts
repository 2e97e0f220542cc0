/** The schema library's findings in the words of `ConfigIssue`. Input values are never quoted. */
import type { z } from 'zod';
import { isObject } from '../json/value.ts';
import { type Finding, suggestion } from './errors.ts';
import { notYet, publishedSchema } from './schema.ts';

type SchemaIssue = z.core.$ZodIssue;

/** One finding a mistake; `value` is what was checked, to say what is where something else should. */
export function readFindings(issues: readonly SchemaIssue[], value: unknown): readonly Finding[] {
  return issues.flatMap((issue) => readIssue(issue, [], value));
}

function readIssue(
  issue: SchemaIssue,
  parent: readonly PropertyKey[],
  value: unknown,
): readonly Finding[] {
  const path = [...parent, ...issue.path];
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({
        path: [...path, key],
        message: `unknown key${suggestion(key, keysAt(publishedSchema(), path))}`,
      }));
    case 'invalid_union':
      return readUnion(issue.errors, path, value);
    case 'invalid_key':
      return [{ path, message: issue.issues[0]?.message ?? 'is not a valid name' }];
    case 'invalid_type':
      return [{ path, message: ownWords(issue) ?? wrongType(issue.expected, path, value) }];
    case 'invalid_value':
      return [{ path, message: valueMessage(issue) }];
    default:
      return [{ path, message: issue.message }];
  }
}

/** The findings of the form that was meant: the one whose outermost type fits what is there. */
function readUnion(
  branches: readonly (readonly SchemaIssue[])[],
  path: readonly PropertyKey[],
  value: unknown,
): readonly Finding[] {
  const meant = branches.find((branch) => !branch.some(isOutermostType));
  if (meant !== undefined) return meant.flatMap((issue) => readIssue(issue, path, value));
  const own = branches
    .flat()
    .map(ownWords)
    .find((words) => words !== undefined);
  if (own !== undefined) return [{ path, message: own }];
  const expected = branches
    .flat()
    .flatMap((issue) => (issue.code === 'invalid_type' ? [issue.expected] : []));
  return [{ path, message: typeMessage(expected, valueAt(value, path)) }];
}

/** What a form says itself of a wrong type. */
function ownWords({ code, message }: SchemaIssue): string | undefined {
  return code === 'invalid_type' && !message.startsWith('Invalid input') ? message : undefined;
}

function isOutermostType(issue: SchemaIssue): boolean {
  return issue.code === 'invalid_type' && issue.path.length === 0;
}

const typeNames: ReadonlyMap<string, string> = new Map([
  ['string', 'a text'],
  ['number', 'a number'],
  ['int', 'a whole number'],
  ['object', 'a mapping'],
  ['record', 'a mapping'],
  ['array', 'a list'],
  ['null', 'nothing'],
  ['boolean', 'true or false'],
]);

function wrongType(expected: string, path: readonly PropertyKey[], value: unknown): string {
  const found = valueAt(value, path);
  const message = typeMessage([expected], found);
  if (path.length === 0) return `${message}; write sections such as providers: and models:`;
  const isMapping = expected === 'object' || expected === 'record';
  if (!isMapping || found === undefined || Array.isArray(found)) return message;
  return `${message}; write ${mappingForm(keysAt(publishedSchema(), path))}`;
}

const shownKeys = 4;

/** `{ wait: …, limit: … }` */
function mappingForm(keys: readonly string[]): string {
  const shown = (keys.length === 0 ? ['NAME'] : keys).slice(0, shownKeys).map((key) => `${key}: …`);
  return `{ ${[...shown, ...(keys.length > shownKeys ? ['…'] : [])].join(', ')} }`;
}

function typeMessage(expected: readonly string[], found: unknown): string {
  if (found === undefined) return 'is missing';
  const wanted = expected.map((name) => typeNames.get(name) ?? name).join(' or ');
  const quotable = typeof found === 'number' || typeof found === 'boolean';
  const hint = expected.includes('string') && quotable ? '; put it in quotes' : '';
  const form =
    expected.includes('record') && Array.isArray(found) ? '; write NAME: in place of each "-"' : '';
  return `expected ${wanted}, found ${foundText(found)}${hint}${form}`;
}

function foundText(found: unknown): string {
  if (found === null) return 'nothing';
  if (Array.isArray(found)) return 'a list';
  return typeNames.get(typeof found) ?? typeof found;
}

function valueMessage(issue: {
  readonly values: readonly unknown[];
  readonly message: string;
}): string {
  const expected = `expected one of ${issue.values.map(String).join(', ')}`;
  return issue.message === notYet ? `${notYet}; ${expected}` : expected;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const step of path) {
    if (Array.isArray(at) && typeof step === 'number') at = at[step];
    else if (isObject(at)) at = at[String(step)];
    else return undefined;
  }
  return at;
}

/** The keys that the JSON Schema knows at a path, over all its alternatives. */
function keysAt(schema: unknown, path: readonly PropertyKey[]): readonly string[] {
  let here = alternatives(schema);
  for (const step of path) {
    here = here.flatMap((form) => alternatives(below(form, step)));
  }
  return here.flatMap((form) =>
    Object.keys(isObject(form['properties']) ? form['properties'] : {}),
  );
}

type Form = Readonly<Record<string, unknown>>;

function below(form: Form, step: PropertyKey): unknown {
  if (typeof step === 'number') return form['items'];
  const { properties } = form;
  const own = isObject(properties) ? properties[String(step)] : undefined;
  return own ?? form['additionalProperties'];
}

function alternatives(schema: unknown): readonly Form[] {
  if (!isObject(schema)) return [];
  const { anyOf } = schema;
  return Array.isArray(anyOf) ? anyOf.flatMap((each) => alternatives(each)) : [schema];
}
