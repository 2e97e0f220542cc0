/** The edits of a relayed request so far, each with its note, and its top level. */
import type { JsonSource } from '../../../core/client-body.ts';
import type { Ask } from '../../../core/dialect.ts';
import { type FieldPath, GatewayError } from '../../../core/errors.ts';
import type { Notes } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { JsonEdit } from '../../../json/edit.ts';
import type { Json, JsonObject } from '../../../json/value.ts';
import { isDefault } from '../shape.ts';

/** Default values, in addition to those that translation omits. */
const defaults: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['n', 1],
  ['temperature', 1],
  ['top_p', 1],
  ['logprobs', false],
  ['parallel_tool_calls', true],
  ['tool_choice', 'auto'],
  ['function_call', 'auto'],
  ['prompt_cache_retention', 'in_memory'],
]);

/** Whether a member has no effect. */
export function hasNoEffect(key: string, value: Json | undefined): boolean {
  if (isDefault(key, value) || value === defaults.get(key)) return true;
  return key === 'modalities' && Array.isArray(value) && value.every((one) => one === 'text');
}

export class Relayed {
  readonly edits: JsonEdit[] = [];
  readonly source: JsonSource;
  /** The request without its long texts and schemas. */
  readonly skeleton: JsonObject;
  readonly ask: Ask;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  /** Text that the instructions must contain in addition. */
  instruction: string | undefined;

  constructor(source: JsonSource, ask: Ask, notes: Notes) {
    this.source = source;
    this.skeleton = source.skeleton;
    this.ask = ask;
    this.traits = ask.traits;
    this.notes = notes;
  }

  /** The value of a member; undefined also for null. */
  value(key: string): Json | undefined {
    return this.skeleton[key] ?? undefined;
  }

  /** Removes a member, with a note if it had an effect. */
  drop(key: string, why: string): void {
    if (!this.source.spans.has(key)) return;
    this.edits.push({ path: [key], text: undefined });
    if (!hasNoEffect(key, this.skeleton[key])) this.notes.lost([key], why);
  }

  /** Removes a member that the upstream is known to refuse, whatever its value. */
  dropRefused(key: string): void {
    const value = this.value(key);
    if (key === 'n' && typeof value === 'number' && value > 1) {
      this.refuse(['n'], 'This model gives one choice only; ask several times instead.');
    }
    if (key === 'web_search_options' && value !== undefined) {
      this.refuse([key], 'This model has no search of its own.');
    }
    const modalities = this.value('modalities');
    const speaks = Array.isArray(modalities) && modalities.includes('audio');
    if (speaks && (key === 'modalities' || key === 'audio')) {
      this.refuse(['modalities'], 'This model does not answer in audio.');
    }
    this.drop(key, 'the model does not take it');
  }

  /** Renames a member. */
  rename(from: string, to: string): void {
    const value = this.value(from);
    this.edits.push({ path: [from], text: undefined });
    if (value === undefined) return;
    this.put([to], value);
    this.notes.changed([from], `sent as ${to}, the name that the provider has for it`);
  }

  /** Sets a member, without a note. */
  put(path: FieldPath, value: Json): void {
    this.edits.push({ path, text: JSON.stringify(value) });
  }

  change(path: FieldPath, value: Json, why: string): void {
    this.put(path, value);
    this.notes.changed(path, why);
  }

  /** Throws a 400 if a client would misread an answer without the member. Another target may take it. */
  refuse(path: FieldPath, why: string): never {
    const options = { path, reason: 'unsupported_parameter', retryable: true };
    throw new GatewayError('invalid_request', why, options);
  }
}
