/**
 * What becomes of the sample of each row at each known model, by the gateway's own readers and writers: a
 * decision that a model departs from is told in docs/user/translation.md with the model's name (D12).
 */
import { Buffer } from 'node:buffer';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { withDemandAsFormat } from '../../src/dialects/shared/request/demanded-call.ts';
import type { ClientDialect } from '../../src/core/dialect.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { parseBody } from '../../src/core/client-body.ts';
import { NoteList, type Note } from '../../src/core/notes.ts';
import { anthropicMessagesClient } from '../../src/dialects/anthropic-messages/client.ts';
import { openaiChatClient } from '../../src/dialects/openai-chat/client.ts';
import { openaiResponsesClient } from '../../src/dialects/openai-responses/client.ts';
import { locate, speaksOf } from '../corpus/locate.ts';
import type { Sample } from '../corpus/sample.ts';
import { corpus } from '../corpus/samples.ts';
import type { AnyDialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import type { KnownModel } from './known-models.ts';

export const clients: { readonly [D in AnyDialect]: ClientDialect } = {
  chat: openaiChatClient,
  messages: anthropicMessagesClient,
  responses: openaiResponsesClient,
};

export interface Tried {
  readonly request: JsonObject;
  readonly notes: readonly Note[];
  /** Undefined where it was refused. */
  readonly body: JsonObject | undefined;
  /** The path of the refusal. */
  readonly refused: string | undefined;
}

/** A request of a dialect at a model, without a socket; of the model's own dialect it is relayed. */
export function tryAt(client: AnyDialect, request: JsonObject, known: KnownModel): Tried {
  const notes = new NoteList();
  try {
    const body =
      known.speaks === client
        ? relay(client, request, known, notes)
        : translate(client, request, known, notes);
    return { request, notes: notes.all, body, refused: undefined };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { request, notes: notes.all, body: undefined, refused: (error.path ?? []).join('.') };
  }
}

function translate(
  client: AnyDialect,
  request: JsonObject,
  known: KnownModel,
  notes: NoteList,
): JsonObject {
  const { traits, dialect } = known;
  clients[client].readHead(request);
  const read = clients[client].readRequest(request, notes);
  return dialect.writeRequest(withDemandAsFormat(read, traits, notes), askOf(known), notes);
}

function relay(
  client: AnyDialect,
  request: JsonObject,
  known: KnownModel,
  notes: NoteList,
): JsonObject {
  clients[client].readHead(request);
  const source = parseBody(Buffer.from(JSON.stringify(request)), new Set());
  if (known.dialect.translates?.(source, known.traits, notes)) {
    return translate(client, request, known, notes);
  }
  const body: Json = JSON.parse(known.dialect.relayRequest(source, askOf(known), notes).toString());
  return isObject(body) ? body : {};
}

function askOf({
  model,
  traits,
  vendor,
}: KnownModel): Parameters<KnownModel['dialect']['writeRequest']>[1] {
  return { model, stream: false, traits, provider: vendor, newId: (prefix) => `${prefix}1` };
}

/** The request that shows a row. */
export function sampleRequest(client: AnyDialect, { sends }: Sample<object>): JsonObject {
  return requestBody(client, { model: 'm', stream: false, more: { ...sends } });
}

/** The sample of a row: its own, else one that shows the row beside its own. */
export function sampleOf(client: AnyDialect, rowId: string): Sample<object> | undefined {
  const samples = corpus[client];
  return samples[rowId] ?? Object.values(samples).find(({ also = [] }) => also.includes(rowId));
}

export interface Departures {
  /** With a note, lost or carried otherwise. */
  readonly told: readonly KnownModel[];
  /** Those of them that lose it. */
  readonly lost: readonly KnownModel[];
  readonly refused: readonly KnownModel[];
}

/** The models that carry a row's field otherwise than other models do, with a note, or refuse it. */
export function departures(
  client: AnyDialect,
  all: readonly KnownModel[],
  row: { id: string; path: string },
): Departures {
  const told: KnownModel[] = [];
  const lost: KnownModel[] = [];
  const refused: KnownModel[] = [];
  const sample = sampleOf(client, row.id);
  if (sample === undefined || sample.unasked === true) return { told, lost, refused };
  const request = sampleRequest(client, sample);
  const paths = locate(request, row.path);
  const concerns = (path: string): boolean => paths.some((each) => speaksOf(path, each));
  for (const known of all) {
    const tried = tryAt(client, request, known);
    const notes = tried.notes.filter(({ path }) => concerns(path));
    if (tried.refused !== undefined && concerns(tried.refused)) refused.push(known);
    else if (notes.length > 0) told.push(known);
    if (notes.some(({ what }) => what === 'lost') && !refused.includes(known)) lost.push(known);
  }
  return { told, lost, refused };
}
