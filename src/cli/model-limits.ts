/** Asks a gateway what it knows of a model. */
import { request as plain } from 'node:http';
import { request as encrypted } from 'node:https';
import { isObject, type JsonObject } from '../json/value.ts';
import { tryParseObject } from '../json/parse.ts';
import type { AdminClient } from './command.ts';
import { answerLimits, type Connection } from './connection.ts';
import { objectsOf } from './reply.ts';

export type ModelLimits = Pick<Connection, 'window' | 'maxOutput'>;

const timeoutMs = 3000;
const mostBytes = 1024 * 1024;

/** By `GET /v1/models/NAME` with the key; nothing is known where that is not answered with 200. Never throws. */
export function limitsByKey({ url, key, model }: Connection): Promise<ModelLimits> {
  return new Promise((resolve) => {
    const nothing = (): void => resolve({});
    const send = url.startsWith('https:') ? encrypted : plain;
    const outgoing = send(`${url}/v1/models/${encodeURIComponent(model)}`, {
      agent: false,
      timeout: timeoutMs,
      headers: { authorization: `Bearer ${key}` },
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('too slow')));
    outgoing.on('error', nothing);
    outgoing.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('error', nothing);
      response.on('data', (piece: string) => {
        text += piece;
        if (text.length > mostBytes) outgoing.destroy(new Error('too long'));
      });
      response.on('end', () => {
        const body = response.statusCode === 200 ? tryParseObject(text) : undefined;
        resolve(body === undefined ? {} : limitsIn(body));
      });
    });
    outgoing.end();
  });
}

/** By the admin API of the gateway that runs here. Never throws. */
export async function limitsByAdmin(admin: AdminClient, model: string): Promise<ModelLimits> {
  try {
    const { body } = await admin.request('GET', '/api/models');
    const models = isObject(body) ? objectsOf(body, 'models') : [];
    const found = models.find(({ id }) => id === model);
    return found === undefined ? {} : limitsIn(found);
  } catch {
    return {};
  }
}

function limitsIn({ max_input_tokens: window, max_tokens: output }: JsonObject): ModelLimits {
  return answerLimits(window, output);
}
