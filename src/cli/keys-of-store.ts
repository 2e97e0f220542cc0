/** The keys that the gateway has, and what is said of one that it does not have. */
import type { Json, JsonObject } from '../json/value.ts';
import type { AdminClient, CommandContext } from './command.ts';
import { cell, objectsOf, requireOk } from './reply.ts';
import { printable } from './table.ts';

/** All pages of `/api/keys`. */
export async function allKeys(admin: AdminClient): Promise<readonly JsonObject[]> {
  const keys: JsonObject[] = [];
  let after: Json | undefined;
  do {
    const start = typeof after === 'string' ? `&after=${encodeURIComponent(after)}` : '';
    const page = requireOk(await admin.request('GET', `/api/keys?limit=1000${start}`));
    keys.push(...objectsOf(page, 'keys'));
    after = page['next'];
  } while (typeof after === 'string');
  return keys;
}

/** Stands in place of a key in calls of the dashboard. */
const playground = 'playground';

/**
 * Says, where no call fits, that `--key` names no key, as when it has the name in place of the id. A key that is there and
 * has no calls needs no word.
 * @returns whether it said something
 */
export async function noteUnknownKey(
  asked: string | undefined,
  context: CommandContext,
): Promise<boolean> {
  if (asked === undefined || asked === playground) return false;
  const keys = await allKeys(await context.admin());
  if (keys.some(({ id }) => id === asked)) return false;
  const named = keys.filter(({ name }) => name === asked).map(({ id }) => cell(id));
  context.stderr(
    named.length === 0
      ? `There is no key with the id ${printable(asked)}. "model-gateway keys list" has the ids.\n`
      : `--key takes an id: the name ${printable(asked)} belongs to ${named.join(', ')}.\n`,
  );
  return true;
}
