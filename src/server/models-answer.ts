/** What a key is shown of the models: the list, or one of them. */
import type { Principal } from '../access/principal.ts';
import type { Registry } from '../providers/registry.ts';
import { unknownModel } from './door-errors.ts';
import { modelEntry, modelPage, type ModelEntry, type ModelPage } from './models.ts';

export interface ModelsQuestion {
  /** As it stands in the path, encoded; undefined for the list. */
  readonly name: string | undefined;
  readonly query: string;
}

/** @throws GatewayError `model_not_found`: also for what the key may not use (E6). */
export async function modelsAnswer(
  registry: Registry,
  principal: Principal,
  { name, query }: ModelsQuestion,
): Promise<ModelEntry | ModelPage> {
  const all = await registry.list();
  const allowed = all.filter((listing) => principal.allowsModel(listing.id));
  if (name === undefined) return modelPage(allowed, query);
  const id = decodeName(name);
  const listing =
    allowed.find((each) => each.id === id) ??
    (principal.allowsModel(id) ? registry.describe(id) : undefined);
  if (listing === undefined) throw unknownModel(id);
  return modelEntry(listing);
}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
