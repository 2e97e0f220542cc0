/** A note on globs of a key that match no model and no provider: the key could call nothing by them. */
import { Glob } from '../core/model-names.ts';
import { isObject } from '../json/value.ts';
import type { AdminClient } from './command.ts';

/** Undefined where each glob may match, or where the gateway cannot say. Lists of providers may be incomplete. */
export async function unmatchedNote(
  globs: readonly string[],
  admin: AdminClient,
): Promise<string | undefined> {
  const [models, providers] = await Promise.all([
    idsIn(admin, '/api/models', 'models'),
    idsIn(admin, '/api/providers', 'providers'),
  ]);
  if (models.length === 0 || providers.length === 0) return undefined;
  const unmatched = globs.filter((text) => {
    const glob = new Glob(text);
    return !models.some((id) => glob.matches(id)) && !providers.some((id) => mayName(text, id));
  });
  if (unmatched.length === 0) return undefined;
  const listed = unmatched.map((text) => JSON.stringify(text)).join(', ');
  const verb = unmatched.length === 1 ? 'matches' : 'match';
  return `${listed} ${verb} no model of this gateway now. Models are named PROVIDER/MODEL (such as openai/*) or by an alias; "model-gateway models" lists them.`;
}

/** Whether the glob can match a model of the provider, listed or not. */
function mayName(glob: string, provider: string): boolean {
  const [literal = ''] = glob.split('*', 1);
  const names = `${provider}/`;
  return literal.startsWith(names) || (names.startsWith(literal) && glob.includes('*'));
}

/** Empty where the request fails: the key is made, whatever is known of models. */
async function idsIn(admin: AdminClient, path: string, member: string): Promise<readonly string[]> {
  try {
    const { body } = await admin.request('GET', path);
    const listed = isObject(body) ? body[member] : undefined;
    if (!Array.isArray(listed)) return [];
    return listed.flatMap((each) =>
      isObject(each) && typeof each['id'] === 'string' ? [each['id']] : [],
    );
  } catch {
    return [];
  }
}
