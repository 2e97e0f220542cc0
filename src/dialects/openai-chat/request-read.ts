/**
 * Reads a whole chat-completions request into the canonical conversation, for translation only
 * (wire/translation.md §1). The head was checked before; what is refused here is what no other
 * dialect can hold.
 */
import type { Conversation, JsonObject, OutputFormat, Sampling } from '../../core/conversation.ts';
import { unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';
import type { Sealer } from '../../core/sealer.ts';
import { atOnce, type Steps } from '../../core/steps.ts';
import { isArray, readInteger, readNumber, readObject, readString } from './fields.ts';
import { readExtras } from './request-read-extras.ts';
import { readConversationTurns } from './request-read-messages.ts';
import { readReasoningControl } from './request-read-reasoning.ts';
import { keepLonger } from './request-read-retention.ts';
import { readToolChoice, readTools } from './request-read-tools.ts';

/** @throws GatewayError `invalid_request` for what the canonical form cannot hold. */
export function readRequest(body: JsonObject, notes: Notes, sealer?: Sealer): Conversation {
  return atOnce(requestReading(body, notes, sealer));
}

/** The same in steps. */
export function* requestReading(
  body: JsonObject,
  notes: Notes,
  sealer?: Sealer,
): Steps<Conversation> {
  refuseUntranslatable(body);
  const { system, turns } = yield* readConversationTurns(body, notes, sealer);
  const toolChoice = readToolChoice(body);
  const reasoning = readReasoningControl(body, notes);
  const endUser = readString(body, 'safety_identifier') ?? readString(body, 'user');
  const read: Conversation = {
    system,
    turns,
    tools: readTools(body),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...(body['parallel_tool_calls'] === false ? { parallelTools: false } : {}),
    sampling: readSampling(body),
    output: readOutputFormat(body),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(endUser === undefined ? {} : { endUser }),
    extras: readExtras(body),
  };
  return body['prompt_cache_retention'] === '24h' ? keepLonger(read, notes) : read;
}

/** What the client would read falsely or wait for in vain (translation.md, principle 2). */
function refuseUntranslatable(body: JsonObject): void {
  const { n, logprobs, modalities, moderation } = body;
  if (typeof n === 'number' && n > 1) {
    throw unsupported(['n'], 'This model gives one choice only; ask several times instead.');
  }
  if (logprobs === true || (typeof logprobs === 'number' && logprobs > 0)) {
    throw unsupported(['logprobs'], 'This model does not report log probabilities.');
  }
  if (isArray(modalities) && modalities.includes('audio')) {
    throw unsupported(['modalities'], 'This model does not answer in audio.');
  }
  if (isObject(moderation) && blocksContent(moderation)) {
    throw unsupported(['moderation'], 'This model cannot promise to block by moderation policy.');
  }
}

function blocksContent(moderation: JsonObject): boolean {
  const policy = moderation['policy'];
  if (!isObject(policy)) return false;
  return Object.values(policy).some((rule) => isObject(rule) && rule['mode'] === 'block');
}

const anyNumber = { min: -Infinity, max: Infinity };

function readSampling(body: JsonObject): Sampling {
  const maxOutputTokens =
    readInteger(body, 'max_completion_tokens', anyNumber) ??
    readInteger(body, 'max_tokens', anyNumber);
  const temperature = readNumber(body, 'temperature', anyNumber);
  const topP = readNumber(body, 'top_p', anyNumber);
  const topK = readInteger(body, 'top_k', anyNumber);
  const seed = readInteger(body, 'seed', anyNumber);
  const stop = readStop(body);
  return {
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    // 0 and -1 mean that the limit is off.
    ...(topK === undefined || topK < 1 ? {} : { topK }),
    ...(stop.length === 0 ? {} : { stop }),
    ...(seed === undefined ? {} : { seed }),
  };
}

function readStop(body: JsonObject): readonly string[] {
  const { stop } = body;
  if (typeof stop === 'string') return [stop];
  return isArray(stop) ? stop.filter((entry) => typeof entry === 'string') : [];
}

function readOutputFormat(body: JsonObject): OutputFormat {
  const format = readObject(body, 'response_format');
  switch (format?.['type']) {
    case undefined:
    case 'text':
      return { type: 'text' };
    case 'json_object':
      return { type: 'json' };
    case 'json_schema':
      return readJsonSchema(format);
    default:
      throw unsupported(['response_format', 'type'], 'This model does not know this format.');
  }
}

function readJsonSchema(format: JsonObject | undefined): OutputFormat {
  const named = format?.['json_schema'];
  if (!isObject(named)) return { type: 'json' };
  const { schema, name, description, strict } = named;
  return {
    type: 'json',
    ...(isObject(schema) ? { schema } : {}),
    ...(typeof name === 'string' ? { name } : {}),
    ...(typeof description === 'string' ? { description } : {}),
    ...(typeof strict === 'boolean' ? { strict } : {}),
  };
}
