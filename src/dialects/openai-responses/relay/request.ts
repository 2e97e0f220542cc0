/**
 * Relays requests: the client's bytes, changed only in members that the gateway sets and in members that this upstream
 * would refuse. The provider stores nothing, even if the client requests it.
 */
import type { JsonSource } from '../../../core/client-body.ts';
import type { Ask } from '../../../core/dialect.ts';
import { NoteList, type Notes } from '../../../core/notes.ts';
import { isSealed } from '../../../core/secret.ts';
import { editJson, type JsonEdit } from '../../../json/edit.ts';
import type { Pieces } from '../../../json/pieces.ts';
import { isObject, type Json, type JsonObject, isArray } from '../../../json/value.ts';
import { ToolIdMap, toolIdMapFor } from '../../shared/tool-names.ts';
import { abandonedItems, abandonedNote } from '../head.ts';
import { callItems, callKindOf, idPrefixes, isItemId, outputKindOf } from '../items.ts';
import { requestsSummary } from '../request/read.ts';
import { encryptedReasoning, isIncluded } from '../request/write.ts';

/** Codex sends data about its session here for OpenAI: local paths and ids. */
const sessionMember = 'client_metadata';
const itemSessionMember = 'internal_chat_message_metadata_passthrough';

export function relayRequest(source: JsonSource, ask: Ask, notes: Notes = new NoteList()): Pieces {
  const members =
    ask.compacts === true ? compactionEdits(source, ask) : memberEdits(source, ask, notes);
  return editJson(source, [...members, ...inputEdits(source, ask, notes)]);
}

/** A request to compact has neither a stream nor a cap, and is never stored. */
function compactionEdits(
  { skeleton, spans }: JsonSource,
  { model, traits }: Ask,
): readonly JsonEdit[] {
  const dropped = [
    'previous_response_id',
    ...(traits.clientMetadata === true ? [] : [sessionMember]),
  ];
  return [
    ...(skeleton['model'] === model ? [] : [{ path: ['model'], text: JSON.stringify(model) }]),
    ...dropped.filter((key) => spans.has(key)).map((key) => ({ path: [key], text: undefined })),
  ];
}

/** Members that the gateway decides on, and those that this upstream is known to refuse. */
function memberEdits({ skeleton, spans }: JsonSource, ask: Ask, notes: Notes): readonly JsonEdit[] {
  const edits: JsonEdit[] = [];
  const put = (key: string, value: Json): void => {
    edits.push({ path: [key], text: JSON.stringify(value) });
  };
  const drop = (key: string): void => {
    if (spans.has(key)) edits.push({ path: [key], text: undefined });
  };
  if (skeleton['model'] !== ask.model) put('model', ask.model);
  if (ask.stream !== (skeleton['stream'] === true)) put('stream', ask.stream);
  if (skeleton['store'] !== false) put('store', false);
  const include = includedBy(skeleton['include'], ask, notes);
  if (include === undefined) drop('include');
  else if (include !== skeleton['include']) put('include', include);
  const summarized = withSummary(skeleton['reasoning'], ask);
  if (summarized !== undefined) put('reasoning', summarized);
  drop('previous_response_id');
  if (ask.maxOutputTokens !== undefined) put('max_output_tokens', ask.maxOutputTokens);
  if (ask.traits.clientMetadata !== true) drop(sessionMember);
  if (!ask.traits.samplingAllowed) {
    for (const key of ['temperature', 'top_p']) {
      drop(key);
      const value = skeleton[key] ?? 1;
      if (value !== 1) notes.lost([key], 'the model takes no sampling parameters');
    }
  }
  return edits;
}

/** What is to be included, with encrypted reasoning. Undefined where the provider refuses all of it. */
function includedBy(given: Json | undefined, { traits }: Ask, notes: Notes): Json | undefined {
  const asked = isArray(given) ? given : [];
  const included = asked.filter((value, i) => {
    const taken = isIncluded(value, traits);
    if (!taken && value !== encryptedReasoning) {
      notes.lost(['include', i], 'the provider refuses to include it');
    }
    return taken;
  });
  if (!included.includes(encryptedReasoning) && isIncluded(encryptedReasoning, traits)) {
    included.push(encryptedReasoning);
  }
  if (included.length === 0) return undefined;
  const same = included.length === asked.length && included.every((value, i) => value === asked[i]);
  return same ? given : included;
}

/** The member that requests a summary, if the operator shows reasoning. Undefined = unchanged. */
function withSummary(given: Json | undefined, { traits }: Ask): JsonObject | undefined {
  const { showsReasoning, reasoningSummary, reasoningControl } = traits;
  if (showsReasoning !== true || reasoningSummary !== true || reasoningControl === 'none') {
    return undefined;
  }
  const reasoning = isObject(given) ? given : {};
  if (reasoning['effort'] === 'none' || requestsSummary(reasoning)) return undefined;
  return { ...reasoning, summary: 'auto' };
}

/** Edits of items that this upstream must not see, or would refuse. */
function inputEdits(source: JsonSource, ask: Ask, notes: Notes): readonly JsonEdit[] {
  const { input } = source.value;
  if (!isArray(input)) return [];
  const ids = new ItemIds(ask);
  const edits: JsonEdit[] = [];
  const abandoned = abandonedItems(input);
  input.forEach((item, i) => {
    if (!isObject(item)) return;
    const path = ['input', i] as const;
    if (abandoned.has(item)) {
      edits.push({ path, text: undefined });
      notes.lost(path, abandonedNote);
      return;
    }
    if (isOmitted(item, ask)) {
      edits.push({ path, text: undefined });
      notes.lost(path, 'reasoning of another provider is not shown to this one');
      return;
    }
    for (const [key, value] of ids.changes(item)) {
      const text = value === undefined ? undefined : JSON.stringify(value);
      edits.push({ path: [...path, key], text });
    }
    if (ask.traits.clientMetadata !== true && item[itemSessionMember] !== undefined) {
      edits.push({ path: [...path, itemSessionMember], text: undefined });
    }
  });
  return edits;
}

/**
 * Reasoning that the gateway sealed belongs to another dialect. Other reasoning is omitted if the provider refused it.
 */
function isOmitted(item: JsonObject, { traits }: Ask): boolean {
  if (item['type'] !== 'reasoning') return false;
  const blob = item['encrypted_content'];
  return traits.historyReasoning === false || (typeof blob === 'string' && isSealed(blob));
}

/** Ids of one request that its service would refuse. */
class ItemIds {
  readonly #ask: Ask;
  readonly #calls: ToolIdMap;

  constructor(ask: Ask) {
    this.#ask = ask;
    this.#calls = toolIdMapFor(ask.traits) ?? new ToolIdMap();
  }

  /** Members of an item with another value; undefined removes them. */
  changes(item: JsonObject): readonly (readonly [key: string, value: string | undefined])[] {
    const changed: (readonly [string, string | undefined])[] = [];
    const { id, type, call_id: call } = item;
    const { itemIdPrefixes, historyReasoning } = this.#ask.traits;
    const prefix = prefixOf(type);
    // The service refuses an item with an id whose reasoning was omitted.
    const refused =
      historyReasoning === false || (itemIdPrefixes === true && !isItemId(id, prefix));
    if (id !== undefined && prefix !== '' && refused) changed.push(['id', undefined]);
    if (typeof call === 'string') {
      const sent =
        outputKindOf(type) === undefined ? this.#calls.call(call) : this.#calls.result(call);
      if (sent !== call) changed.push(['call_id', sent]);
    }
    return changed;
  }
}

/** The id prefix of an item type; `''` = any id is valid. */
function prefixOf(type: Json | undefined): string {
  const kind = callKindOf(type);
  if (kind !== undefined) return callItems[kind].prefix;
  if (type === 'reasoning') return idPrefixes.reasoning;
  return type === 'message' || type === undefined ? idPrefixes.message : '';
}
