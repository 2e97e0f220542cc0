/** What a vendor's model is sent of a request in the other dialect, without a socket. */
import assert from 'node:assert/strict';
import type { JsonObject } from '../../src/json/value.ts';
import type { ClientDialect } from '../../src/core/dialect.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { NoteList } from '../../src/core/notes.ts';
import { anthropicMessagesClient } from '../../src/dialects/anthropic-messages/client.ts';
import { openaiChatClient } from '../../src/dialects/openai-chat/client.ts';
import { providerRow } from '../../src/providers/compatible.ts';
import { createHttpProvider } from '../../src/providers/http-provider.ts';

/** `vendor/model`, and what the config says of the vendor. */
export interface Asked {
  readonly target: string;
  readonly baseUrl?: string;
  readonly betas?: readonly string[];
  readonly region?: string;
}

export interface Translated {
  readonly body: JsonObject;
  /** `lost path` or `changed path`, in the client's dialect. */
  readonly notes: readonly string[];
}

/** A row's provider; an id without a row is an unknown server of the other dialect. */
export function translate(client: ClientDialect, asked: Asked, request: JsonObject): Translated {
  const [id = '', ...rest] = asked.target.split('/');
  const row = providerRow(id);
  const provider = createHttpProvider({
    id,
    dialect: row?.dialect ?? (client === openaiChatClient ? 'anthropic-messages' : 'openai-chat'),
    baseUrl: asked.baseUrl ?? row?.baseUrl ?? 'http://127.0.0.1:9',
    ...(row === undefined ? {} : { row }),
    options: {
      ...(asked.betas === undefined ? {} : { betas: asked.betas }),
      ...(asked.region === undefined ? {} : { region: asked.region }),
    },
  });
  const model = rest.join('/');
  const notes = new NoteList();
  client.readHead(request);
  const body = provider.dialect.writeRequest(
    client.readRequest(request, notes),
    {
      model,
      stream: false,
      traits: provider.traits(model),
      newId: () => assert.fail('no random ids in requests'),
    },
    notes,
  );
  return { body, notes: notes.all.map(({ what, path }) => `${what} ${path}`) };
}

const minimal = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] };

/** A messages request with these members, for an upstream that speaks chat completions. */
export function fromMessages(asked: Asked | string, more: JsonObject): Translated {
  const request = { ...minimal, max_tokens: 16_000, ...more };
  return translate(anthropicMessagesClient, askedOf(asked), request);
}

/** A chat request with these members, for an upstream that speaks messages. */
export function fromChat(asked: Asked | string, more: JsonObject): Translated {
  return translate(openaiChatClient, askedOf(asked), { ...minimal, ...more });
}

function askedOf(asked: Asked | string): Asked {
  return typeof asked === 'string' ? { target: asked } : asked;
}

/** Members besides those that every request has. */
export function ownMembers({ body }: Translated): JsonObject {
  const everywhere = new Set(['model', 'messages', 'max_tokens', 'max_completion_tokens', 'tools']);
  return Object.fromEntries(Object.entries(body).filter(([key]) => !everywhere.has(key)));
}

/** The path of the refusal, in dots; fails when there is none. */
export function refusedPath(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return (error.path ?? []).join('.');
  }
  return assert.fail('it was not refused');
}
