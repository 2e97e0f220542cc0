/** Why calls failed, in words for the operator: names instead of ids, and the provider's own sentence. */
import type { JsonObject } from '../json/value.ts';
import type { AdminClient } from './command.ts';
import { cell, objectsOf, requireOk } from './reply.ts';

export class CallCauses {
  readonly #admin: AdminClient;
  readonly #names = new Map<string, string>();

  constructor(admin: AdminClient) {
    this.#admin = admin;
  }

  /** The name of a key; its id if the key does not exist. */
  async keyName(id: string): Promise<string> {
    const known = this.#names.get(id);
    if (known !== undefined) return known;
    const { status, body } = await this.#admin.request(
      'GET',
      `/api/keys/${encodeURIComponent(id)}`,
    );
    const name = status === 200 ? requireOk({ status, body })['name'] : undefined;
    const found = typeof name === 'string' && name !== '' ? name : id;
    this.#names.set(id, found);
    return found;
  }

  /** Whose limit refused: `key ana, requests` of `key:ibO4BQ8E:requests`. */
  async limitName(limit: string): Promise<string> {
    const from = limit.indexOf(':');
    const to = limit.lastIndexOf(':');
    if (from === -1 || to === from) return limit;
    const kind = limit.slice(0, from);
    const name = limit.slice(from + 1, to);
    return `${kind} ${kind === 'key' ? await this.keyName(name) : name}, ${limit.slice(to + 1)}`;
  }

  /**
   * The limit that refused a call, then what the provider said last, or else the error that the client got.
   * @param call as `GET /api/calls` lists it
   */
  async sentence(call: JsonObject): Promise<string> {
    const { id, limit, message, attempts } = call;
    const whose = typeof limit === 'string' ? `${await this.limitName(limit)}: ` : '';
    const said =
      typeof id === 'string' && attempts !== 0 ? await this.#lastOfProvider(id) : undefined;
    return `${whose}${said ?? cell(message)}`;
  }

  /** The cause of a call by its id; undefined where its details cannot be had. */
  async sentenceOf(id: string): Promise<string | undefined> {
    const call = await this.#call(id);
    return call === undefined ? undefined : this.sentence(call);
  }

  async #lastOfProvider(id: string): Promise<string | undefined> {
    const attempts = objectsOf((await this.#call(id)) ?? {}, 'attempt_list');
    const messages = attempts.map(({ message }) => message);
    return messages.findLast((message) => typeof message === 'string');
  }

  async #call(id: string): Promise<JsonObject | undefined> {
    const reply = await this.#admin.request('GET', `/api/calls/${encodeURIComponent(id)}`);
    // A busy store must not end a tail: the row of the call has a sentence, too.
    return reply.status === 200 ? requireOk(reply) : undefined;
  }
}
