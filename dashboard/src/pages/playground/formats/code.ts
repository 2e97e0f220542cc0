/** The request as a program: curl, and the official SDKs in TypeScript and Python. */
import {
  anthropicClientCode,
  baseUrl,
  openaiClientCode,
  placeholderKey,
  pythonKey,
  quoted,
  shellValue,
  type Connection,
} from '../../../../../src/cli/connection.ts';
import { isRecord, type JsonRecord } from './request.ts';
import { endpointPaths, type Endpoint } from './turns.ts';

export const languages = ['curl', 'TypeScript', 'Python'] as const;
export type Language = (typeof languages)[number];

export interface CodedRequest {
  readonly endpoint: Endpoint;
  readonly body: JsonRecord;
  /** Members of the body that the SDKs may not know. */
  readonly extra: JsonRecord;
}

/** Holds the key, which is in none of the programs. */
const keyVariable = 'MODEL_GATEWAY_KEY';

/** @param url of the data plane: `http://HOST:PORT` */
export function codeOf(language: Language, request: CodedRequest, url: string): string {
  const connection = { url, key: placeholderKey, keyVariable, model: '' };
  return writers[language](request, connection);
}

const writers: {
  readonly [L in Language]: (request: CodedRequest, connection: Connection) => string;
} = { curl: curlCode, TypeScript: typescriptCode, Python: pythonCode };

function curlCode({ endpoint, body }: CodedRequest, connection: Connection): string {
  const { url, key } = connection;
  const word = (text: string): string => shellValue(text, { ...connection, key: '' });
  const headers =
    endpoint === 'messages'
      ? [`x-api-key: ${key}`, 'anthropic-version: 2023-06-01']
      : [`authorization: Bearer ${key}`];
  const unbuffered = body['stream'] === true ? '-N ' : '';
  return [
    `curl ${unbuffered}${word(`${url}${endpointPaths[endpoint]}`)}`,
    ...[...headers, 'content-type: application/json'].map(
      (header) => `-H ${shellValue(header, connection)}`,
    ),
    `-d ${word(JSON.stringify(body, null, 2))}`,
  ].join(' \\\n  ');
}

interface SdkCalls {
  readonly method: string;
  /** What is printed of an answer, and of each event of a stream. */
  readonly typescript: { readonly answer: string; readonly stream: string };
  readonly python: { readonly answer: string; readonly stream: string };
}

const sdkCalls: { readonly [E in Endpoint]: SdkCalls } = {
  chat: {
    method: 'chat.completions.create',
    typescript: {
      answer: 'console.log(answer.choices[0].message.content);',
      stream: `for await (const chunk of answer) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? '');
}`,
    },
    python: {
      answer: 'print(answer.choices[0].message.content)',
      stream: `for chunk in answer:
    if chunk.choices:
        print(chunk.choices[0].delta.content or '', end='', flush=True)`,
    },
  },
  messages: {
    method: 'messages.create',
    typescript: {
      answer: 'console.log(answer.content);',
      stream: `for await (const event of answer) {
  if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
    process.stdout.write(event.delta.text);
  }
}`,
    },
    python: {
      answer: 'print(answer.content)',
      stream: `for event in answer:
    if event.type == 'content_block_delta' and event.delta.type == 'text_delta':
        print(event.delta.text, end='', flush=True)`,
    },
  },
  responses: {
    method: 'responses.create',
    typescript: {
      answer: 'console.log(answer.output_text);',
      stream: `for await (const event of answer) {
  if (event.type === 'response.output_text.delta') process.stdout.write(event.delta);
}`,
    },
    python: {
      answer: 'print(answer.output_text)',
      stream: `for event in answer:
    if event.type == 'response.output_text.delta':
        print(event.delta, end='', flush=True)`,
    },
  },
};

function typescriptCode(request: CodedRequest, connection: Connection): string {
  const { endpoint, body, extra } = request;
  const { method, typescript: shown } = sdkCalls[endpoint];
  const [sdk, client] =
    endpoint === 'messages'
      ? [imported('Anthropic', '@anthropic-ai/sdk'), anthropicClientCode(connection)]
      : [imported('OpenAI', 'openai'), openaiClientCode(connection)];
  const members = Object.entries(knownMembers(request)).map(
    ([name, value]) => `  ${javascriptName(name)}: ${literal(value, typescript, '  ')},`,
  );
  if (Object.keys(extra).length > 0) {
    members.push(`  ...(${literal(extra, typescript, '  ')} as object),`);
  }
  return `${sdk}

const client = ${client};
const answer = await client.${method}({
${members.join('\n')}
});
${body['stream'] === true ? shown.stream : shown.answer}
`;
}

function imported(name: string, from: string): string {
  return `import ${name} from ${quoted(from)};`;
}

function pythonCode(request: CodedRequest, connection: Connection): string {
  const { endpoint, body, extra } = request;
  const { method, python: shown } = sdkCalls[endpoint];
  const isMessages = endpoint === 'messages';
  const sdk = isMessages ? 'Anthropic' : 'OpenAI';
  const base = isMessages ? connection.url : baseUrl(connection);
  const members = Object.entries(knownMembers(request)).map(
    ([name, value]) => `    ${name}=${literal(value, python, '    ')},`,
  );
  if (Object.keys(extra).length > 0) {
    members.push(`    extra_body=${literal(extra, python, '    ')},`);
  }
  return `import os

from ${sdk.toLowerCase()} import ${sdk}

client = ${sdk}(base_url=${quoted(base)}, api_key=${pythonKey(connection)})
answer = client.${method}(
${members.join('\n')}
)
${body['stream'] === true ? shown.stream : shown.answer}
`;
}

function knownMembers({ body, extra }: CodedRequest): JsonRecord {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !Object.hasOwn(extra, name)));
}

/** How a language writes what JSON has. */
interface Literals {
  readonly name: (name: string) => string;
  readonly constants: { readonly true: string; readonly false: string; readonly null: string };
  /** Of one level. */
  readonly indent: string;
}

const typescript: Literals = {
  name: javascriptName,
  constants: { true: 'true', false: 'false', null: 'null' },
  indent: '  ',
};

const python: Literals = {
  name: quoted,
  constants: { true: 'True', false: 'False', null: 'None' },
  indent: '    ',
};

function javascriptName(name: string): string {
  // Without brackets a literal's `__proto__` sets its prototype.
  if (name === '__proto__') return `['__proto__']`;
  return /^[A-Za-z_]\w*$/.test(name) ? name : quoted(name);
}

/** JSON's escapes are those of both languages. */
function literal(value: unknown, language: Literals, indent: string): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'number') return JSON.stringify(value);
  const inner = indent + language.indent;
  const block = (open: string, items: readonly string[], close: string): string =>
    items.length === 0
      ? open + close
      : `${open}\n${items.map((item) => `${inner}${item},\n`).join('')}${indent}${close}`;
  if (Array.isArray(value)) {
    const items = (value as readonly unknown[]).map((item) => literal(item, language, inner));
    return block('[', items, ']');
  }
  if (isRecord(value)) {
    const members = Object.entries(value).map(
      ([name, member]) => `${language.name(name)}: ${literal(member, language, inner)}`,
    );
    return block('{', members, '}');
  }
  return value === true
    ? language.constants.true
    : value === false
      ? language.constants.false
      : language.constants.null;
}
