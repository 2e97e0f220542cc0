/** `GET /v1/models`: one body that both official SDKs can read, with pages. */
import type { Principal } from '../access/keys/principal.ts';
import { invalidRequest } from '../core/errors.ts';
import type { JsonObject } from '../json/value.ts';
import { contextOf, type LocalModelFile, parallelOf } from '../local-models/model-file.ts';
import type { ModelListing, Registry } from '../providers/registry.ts';
import { unknownModel, usableNames } from './paths.ts';

interface ModelEntry {
  readonly id: string;
  readonly object: 'model';
  readonly type: 'model';
  readonly created: number;
  readonly created_at: string;
  readonly owned_by: string;
  readonly display_name: string;
  readonly max_input_tokens: number | null;
  readonly max_tokens: number | null;
  readonly capabilities: JsonObject | null;
  readonly lifecycle: 'active' | 'deprecated' | 'retired';
  readonly line: string | null;
  readonly deprecated_at: string | null;
  readonly retires_at: string | null;
  /** Only for models that run on this machine. */
  readonly local?: JsonObject;
}

interface ModelPage {
  readonly object: 'list';
  readonly data: readonly ModelEntry[];
  readonly has_more: boolean;
  readonly first_id: string | null;
  readonly last_id: string | null;
}

/** One model. Both formats allow the epoch for an unknown release date. */
function modelEntry({ id, ownedBy, facts = {}, local }: ModelListing): ModelEntry {
  const createdAt = facts.createdAt ?? 0;
  return {
    id,
    object: 'model',
    type: 'model',
    created: Math.floor(createdAt / 1000),
    created_at: new Date(createdAt).toISOString().replace('.000Z', 'Z'),
    owned_by: ownedBy,
    display_name: facts.displayName ?? id,
    max_input_tokens: facts.maxInputTokens ?? null,
    max_tokens: facts.maxOutputTokens ?? null,
    capabilities: facts.capabilities ?? null,
    lifecycle: facts.lifecycle ?? 'active',
    line: facts.line ?? null,
    deprecated_at: facts.deprecatedAt ?? null,
    retires_at: facts.retiresAt ?? null,
    ...(local === undefined ? {} : { local: localModelJson(local) }),
  };
}

/** Properties of a model of the embedded engine. */
export function localModelJson(file: LocalModelFile): JsonObject {
  return {
    size_bytes: file.bytes,
    parameters: file.parameters ?? null,
    quantization: file.quantization ?? null,
    architecture: file.architecture ?? null,
    context: contextOf(file) ?? null,
    trained_context: file.contextLength ?? null,
    chat_template: file.hasChatTemplate ?? null,
    reasoning: file.hasChatTemplate === undefined ? null : (file.reasoning ?? 'none'),
    parallel: parallelOf(file),
    demonstration: file.demo === true,
  };
}

const largestPage = 1000;

interface Bounds {
  readonly start: number;
  readonly end: number;
  readonly more: boolean;
}

function pageBehind(listings: readonly ModelListing[], after: string, limit: number): Bounds {
  const start = after === '' ? 0 : indexOfModel(listings, after, 'after_id') + 1;
  const end = start + limit;
  return { start, end, more: end < listings.length };
}

/** The models right before the cursor, in the list's order. */
function pageBefore(listings: readonly ModelListing[], before: string, limit: number): Bounds {
  const end = indexOfModel(listings, before, 'before_id');
  const start = Math.max(0, end - limit);
  return { start, end, more: start > 0 };
}

function pageOf(listings: readonly ModelListing[], { start, end, more }: Bounds): ModelPage {
  const data = listings.slice(start, end).map(modelEntry);
  const [first, last] = [data.at(0)?.id ?? null, data.at(-1)?.id ?? null];
  return { object: 'list', data, has_more: more, first_id: first, last_id: last };
}

function indexOfModel(listings: readonly ModelListing[], id: string, parameter: string): number {
  const index = listings.findIndex((listing) => listing.id === id);
  if (index === -1) throw invalidRequest('There is no such model in the list.', [parameter]);
  return index;
}

function readLimit(text: string | null): number | undefined {
  if (text === null || text === '') return undefined;
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > largestPage) {
    throw invalidRequest(`Input should be a whole number from 1 to ${largestPage}.`, ['limit']);
  }
  return limit;
}

// A request for the model list, or for one model.

interface ModelsQuestion {
  /** The encoded name from the path; undefined for the list. */
  readonly name: string | undefined;
  readonly query: string;
}

/** @throws GatewayError `model_not_found`: also for models that the key may not use (E6). */
export async function modelsAnswer(
  registry: Registry,
  principal: Principal,
  { name, query }: ModelsQuestion,
): Promise<ModelEntry | ModelPage> {
  const all = await registry.list();
  const allowed = all.filter((listing) => principal.allowsModel(listing.id));
  if (name === undefined) {
    // A page of the list by `limit`, `after_id` and `before_id`. Without `limit` everything up to the maximum is
    // one page, since chat clients do not read further pages.
    const wanted = new URLSearchParams(query);
    const after = wanted.get('after_id') ?? '';
    const before = wanted.get('before_id') ?? '';
    if (after !== '' && before !== '') {
      throw invalidRequest('Give after_id or before_id, not both.', ['before_id']);
    }
    const paged = wanted.has('limit') || after !== '' || before !== '';
    const limit = readLimit(wanted.get('limit')) ?? (paged ? largestPage : allowed.length);
    return before === ''
      ? pageOf(allowed, pageBehind(allowed, after, limit))
      : pageOf(allowed, pageBefore(allowed, before, limit));
  }
  const id = decodeName(name);
  const listing =
    allowed.find((each) => each.id === id) ??
    (principal.allowsModel(id) ? registry.describe(id) : undefined);
  if (listing === undefined) throw unknownModel(id, usableNames(registry, principal));
  return modelEntry(listing);
}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
