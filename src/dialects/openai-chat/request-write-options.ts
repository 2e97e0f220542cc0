/** Sampling, output format and end user, as far as the upstream takes them. */
import { createHash } from 'node:crypto';
import type { Json, JsonObject, OutputFormat, Sampling } from '../../core/conversation.ts';
import { unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { isArray, type JsonMembers } from './fields.ts';

/** Notes name the fields of the messages dialect: the only one that is translated to this one. */
export function writeSampling(
  sampling: Sampling,
  traits: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  const { maxOutputTokens, topK, seed } = sampling;
  const members: JsonMembers = {};
  if (maxOutputTokens !== undefined) members[traits.maxTokensField] = maxOutputTokens;
  writeTemperature(members, sampling, { traits, notes });
  if (topK !== undefined) {
    if (traits.topK) members['top_k'] = topK;
    else notes.lost(['top_k'], 'not known to the model');
  }
  if (seed !== undefined) {
    if (traits.seed) members['seed'] = seed;
    else notes.lost(['seed'], 'not known to the model');
  }
  return { ...members, ...writeStop(sampling.stop, traits, notes) };
}

interface Target {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

function writeTemperature(
  members: JsonMembers,
  { temperature, topP }: Sampling,
  { traits, notes }: Target,
): void {
  for (const [key, value] of [
    ['temperature', temperature],
    ['top_p', topP],
  ] as const) {
    if (value === undefined) continue;
    if (traits.samplingAllowed) members[key] = value;
    // 1 is what the model does anyway.
    else if (value !== 1) notes.lost([key], 'the model does not let itself be tuned');
  }
}

function writeStop(
  stop: readonly string[] | undefined,
  { stopMax }: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  if (stop === undefined || stop.length === 0) return {};
  if (stopMax === 0) {
    notes.lost(['stop_sequences'], 'not known to the model');
    return {};
  }
  if (stopMax !== undefined && stop.length > stopMax) {
    throw unsupported(
      ['stop_sequences'],
      `This model takes at most ${stopMax} stop sequences, but ${stop.length} are given.`,
    );
  }
  return { stop: [...stop] };
}

export interface WrittenFormat {
  readonly members: JsonMembers;
  /** What the system prompt must say because the upstream does not enforce it. */
  readonly instruction: string | undefined;
}

/** Structured output; a schema that the upstream cannot enforce becomes an instruction. */
export function writeOutputFormat(
  output: OutputFormat,
  traits: UpstreamTraits,
  notes: Notes,
): WrittenFormat {
  if (output.type === 'text') return { members: {}, instruction: undefined };
  const { schema } = output;
  if (schema !== undefined && traits.responseFormat === 'schema') {
    return { members: writeSchema(output, schema, notes), instruction: undefined };
  }
  notes.changed(['output_config', 'format'], 'asked for in the prompt, not enforced by the model');
  const rule = 'Answer with one JSON object and nothing else.';
  return {
    members: traits.responseFormat === 'none' ? {} : { response_format: { type: 'json_object' } },
    instruction:
      schema === undefined
        ? rule
        : `${rule} It must match this JSON schema: ${JSON.stringify(schema)}`,
  };
}

function writeSchema(
  output: Extract<OutputFormat, { type: 'json' }>,
  schema: JsonObject,
  notes: Notes,
): JsonMembers {
  const { name = 'output', description } = output;
  const strict = output.strict ?? isStrict(schema);
  if (output.strict === undefined && !strict) {
    notes.changed(['output_config', 'format'], 'optional properties: not enforced strictly');
  }
  return {
    response_format: {
      type: 'json_schema',
      json_schema: {
        name,
        ...(description === undefined ? {} : { description }),
        schema,
        strict,
      },
    },
  };
}

/** Strict mode wants every property required and no others, at every level. */
function isStrict(schema: Json | undefined): boolean {
  if (isArray(schema)) return schema.every(isStrict);
  if (!isObject(schema)) return true;
  const { properties, required } = schema;
  if (isObject(properties)) {
    const names = isArray(required) ? required : [];
    if (schema['additionalProperties'] !== false) return false;
    if (!Object.keys(properties).every((name) => names.includes(name))) return false;
    if (!Object.values(properties).every(isStrict)) return false;
  }
  const { $defs, definitions } = schema;
  return (
    [schema['items'], schema['anyOf'], schema['allOf']].every(isStrict) &&
    [$defs, definitions].every((named) => !isObject(named) || Object.values(named).every(isStrict))
  );
}

const maxEndUserLength = 64;

/** Longer ids are hashed: cutting them would merge users with a common prefix. */
export function writeEndUser(
  endUser: string | undefined,
  { endUserField }: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  if (endUser === undefined) return {};
  if (endUserField === undefined) {
    notes.lost(['metadata', 'user_id'], 'the provider takes no id of the end user');
    return {};
  }
  const short = endUser.length <= maxEndUserLength;
  return {
    [endUserField]: short ? endUser : createHash('sha256').update(endUser).digest('hex'),
  };
}
