/** `explain`: what the running gateway would do with a request, without sending it. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isObject, type Json, type JsonObject } from '../../json/value.ts';
import { tryParse } from '../../json/parse.ts';
import { readArguments, UsageError, withUsage } from '../arguments.ts';
import type { Command, CommandContext } from '../command.ts';
import { cell, jsonText, objectsOf, requireOk } from '../reply.ts';
import { columns, printable } from '../table.ts';

const help = `Usage: model-gateway explain FILE [options]

Shows what the running gateway would do with the request in FILE (JSON; - reads
standard input), without sending it: the targets in order and why, the upstream
body for each, what would be dropped or changed, prompt tokens, maximum and
expected cost, and the limits and budgets that would be charged. Header values
are masked.

  --endpoint NAME  chat/completions (default), messages, responses
                   or responses/compact
  --key ID         the key to call with; default: none, without limits
  --body           also print the upstream bodies
  --json           print the complete answer
`;

/** @param cwd where relative paths start. */
export function explainCommand({ cwd }: { readonly cwd: string }): Command {
  return {
    name: 'explain',
    summary: 'show what a request would do, without sending it',
    help,
    run: (args, context) => withUsage(context, 'explain', () => run(args, context, cwd)),
  };
}

async function run(args: readonly string[], context: CommandContext, cwd: string): Promise<number> {
  const given = readArguments(args, {
    values: ['endpoint', 'key'],
    switches: ['body', 'json'],
    positionals: ['FILE'],
  });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const [file = ''] = given.positionals;
  const query = new URLSearchParams({ endpoint: given.value('endpoint') ?? 'chat/completions' });
  const key = given.value('key');
  if (key !== undefined) query.set('key', key);
  const request = readRequest(file, cwd);
  const admin = await context.admin();
  const answer = requireOk(await admin.request('POST', `/api/explain?${query}`, request));
  context.stdout(given.has('json') ? jsonText(answer) : textOf(answer, given.has('body')));
  return 0;
}

function readRequest(file: string, cwd: string): JsonObject {
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : resolve(cwd, file), 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new UsageError(`${file}: cannot be read (${code}).`);
  }
  const request = tryParse(text);
  if (!isObject(request)) throw new UsageError(`${file}: expected a JSON object.`);
  return request;
}

function textOf(answer: JsonObject, withBodies: boolean): string {
  const { cost, prompt, refused } = answer;
  const facts = [
    ['model', cell(answer['model'])],
    ['as', `${cell(answer['endpoint'])}, key ${cell(answer['key'])}`],
    ['refused', refusedText(refused)],
    [
      'prompt',
      isObject(prompt) ? `${cell(prompt['tokens'])} tokens, by ${cell(prompt['counted_by'])}` : '-',
    ],
    ['highest cost', dollars(cost, 'highest_usd')],
    ['expected cost', expectedText(cost)],
  ];
  const limits = objectsOf(answer, 'limits').map((limit) =>
    ['kind', 'holder', 'limit', 'takes', 'left', 'per', 'models'].map((name) => cell(limit[name])),
  );
  const head = ['LIMIT', 'OF', 'AMOUNT', 'TAKES', 'LEFT', 'PER', 'MODELS'];
  return [
    columns(facts),
    ...(limits.length === 0 ? [] : [columns([head, ...limits], { head: true })]),
    ...objectsOf(answer, 'targets').map((target) => targetText(target, withBodies)),
  ].join('\n');
}

function targetText(target: JsonObject, withBodies: boolean): string {
  const { place, request } = target;
  const credential =
    target['credential'] === null ? '' : `, credential ${cell(target['credential'])}`;
  const lines = [
    `${place === null ? '-' : cell(place)}. ${cell(target['target'])}${credential}`,
    `   why      ${cell(target['why'])}`,
    `   health   ${cell(target['health'])}`,
    `   price    ${priceText(target['price'])}`,
    `   request  ${isObject(request) ? `${cell(target['mode'])}, ${cell(request['method'])} ${cell(request['url'])}` : refusedText(target['refused'])}`,
    ...objectsOf(target, 'notes').map(
      (note) =>
        `   note     ${cell(note['path'])}: ${note['what'] === 'lost' ? 'dropped' : 'changed'}, ${cell(note['why'])}`,
    ),
  ].map(printable);
  const body = withBodies && isObject(request) ? jsonText(request['body'] ?? null) : '';
  return `${lines.join('\n')}\n${body}`;
}

function priceText(price: Json | undefined): string {
  if (!isObject(price)) return 'unknown';
  return `${cell(price['input'])} in, ${cell(price['output'])} out, dollars per million tokens (${cell(price['source'])})`;
}

function expectedText(cost: Json | undefined): string {
  if (!isObject(cost) || cost['expected_usd'] === null) return 'unknown';
  return `${dollars(cost, 'expected_usd')} with an answer of ${cell(cost['expected_output_tokens'])} tokens`;
}

function dollars(cost: Json | undefined, name: string): string {
  const amount = isObject(cost) ? cost[name] : null;
  return typeof amount === 'string' ? `$${amount}` : 'unknown';
}

/** `400: Strict: this would be dropped…`, in either dialect's form. */
function refusedText(refused: Json | undefined): string {
  if (!isObject(refused)) return 'no';
  const { status, body } = refused;
  const error = isObject(body) ? body['error'] : undefined;
  return `${cell(status)}: ${isObject(error) ? cell(error['message']) : ''}`;
}
