/**
 * What a chat vendor refuses of a request, as one declarative record a vendor, and the look at a request by it. Written
 * against the vendors' documents and their users' reports, not with the gateway's own traits: a mistake in
 * these would stay hidden.
 */
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { listAt, objectAt } from '../support/reading.ts';

export type Path = readonly (string | number)[];

/** Why a request is refused. Each vendor says it in its own words. */
export type FaultKind =
  | 'unknown'
  | 'unsupported'
  | 'value'
  | 'role'
  | 'system'
  | 'order'
  | 'id'
  | 'many'
  | 'media'
  | 'missing';

export interface Fault {
  readonly kind: FaultKind;
  readonly path: Path;
  /** What is taken instead, where the vendor says so. */
  readonly taken?: string;
}

export interface Refusal {
  readonly status: number;
  readonly body: Json;
}

type Names = readonly string[];

export interface VendorRules {
  /** Id of the provider in the config, and the model that is asked. */
  readonly provider: string;
  readonly model: string;
  /** What else the config says of the provider. */
  readonly config?: JsonObject;
  /** Top-level members that are known; absent = unknown ones are skipped. */
  readonly members?: Names;
  /** Members that this model does not take, in whatever value. */
  readonly refused?: Names;
  /** Members whose values are taken only from these; a value of null is taken. */
  readonly values?: { readonly [member: string]: readonly Json[] };
  /** Members that are skipped although they mean something: a request with one is not answered as asked. */
  readonly unread?: Names;
  readonly roles: Names;
  /** Members of messages by role; absent = unknown ones are skipped. */
  readonly messageMembers?: { readonly [role: string]: Names };
  /** Members of content parts besides `type` and their own; absent = unknown ones are skipped. */
  readonly partMembers?: Names;
  /** Members of `tools[].function`; absent = unknown ones are skipped. */
  readonly functionMembers?: Names;
  /** Where system messages may stand. */
  readonly system: 'anywhere' | 'first';
  /** What ids of calls must look like. */
  readonly callIds?: RegExp;
  /** How images may come in user messages. */
  readonly images: 'none' | 'base64' | 'url';
  /** Forms of `tool_choice`: words, or `function` for a named one. */
  readonly toolChoices?: Names;
  readonly maxStops?: number;
  /** Types of `response_format`. */
  readonly formats?: Names;
  /** The reasoning of assistant messages: demanded, or refused where no one made it. */
  readonly history?: (message: JsonObject, path: Path) => readonly Fault[];
  /** Whose seals its models read; absent = those of its own vendor only. */
  readonly reads?: 'claude';
  /** It wants its own reasoning back: whatever the client keeps, or where the client `kept` it. */
  readonly wants?: 'always' | 'kept';
  /** Roles that may stand behind a role, and at the end; absent = any order that the dialect allows. */
  readonly order?: { readonly after: { readonly [role: string]: Names }; readonly last: Names };
  /** How a fault is said. */
  readonly refuse: (fault: Fault) => Refusal;
}

/** All that is wrong with a request, in the order of its members. */
export function faultsOf(rules: VendorRules, body: JsonObject): readonly Fault[] {
  return [
    ...memberFaults(rules, body),
    ...valueFaults(rules, body),
    ...messageFaults(rules, listAt(body, 'messages')),
    ...orderFaults(rules, listAt(body, 'messages')),
    ...toolFaults(rules, body),
  ];
}

/** Members of a request that the vendor skips although they mean something. */
export function unreadOf(rules: VendorRules, body: JsonObject): Names {
  return (rules.unread ?? []).filter((name) => body[name] !== undefined);
}

function memberFaults({ members, refused = [] }: VendorRules, body: JsonObject): Fault[] {
  const names = Object.keys(body);
  return [
    ...unknownFaults(names, members, []),
    ...refused
      .filter((name) => names.includes(name) && body[name] !== null)
      .map((name): Fault => ({ kind: 'unsupported', path: [name] })),
  ];
}

function unknownFaults(names: Names, known: Names | undefined, path: Path): Fault[] {
  if (known === undefined) return [];
  return names
    .filter((name) => !known.includes(name))
    .map((name) => ({ kind: 'unknown', path: [...path, name] }));
}

function valueFaults(rules: VendorRules, body: JsonObject): Fault[] {
  const faults: Fault[] = [];
  for (const [name, taken] of Object.entries(rules.values ?? {})) {
    const value = body[name];
    if (value === undefined || value === null || taken.includes(value)) continue;
    faults.push({ kind: 'value', path: [name], taken: taken.map(String).join(', ') });
  }
  const { stop, tool_choice: choice } = body;
  if (Array.isArray(stop) && stop.length > (rules.maxStops ?? Infinity)) {
    faults.push({ kind: 'many', path: ['stop'], taken: String(rules.maxStops) });
  }
  const format = objectAt(body, 'response_format')['type'];
  if (typeof format === 'string' && rules.formats?.includes(format) === false) {
    faults.push({ kind: 'value', path: ['response_format', 'type'] });
  }
  const form = isObject(choice) ? choice['type'] : choice;
  if (typeof form === 'string' && rules.toolChoices?.includes(form) === false) {
    faults.push({ kind: 'value', path: ['tool_choice'] });
  }
  return faults;
}

function toolFaults({ functionMembers, toolChoices }: VendorRules, body: JsonObject): Fault[] {
  const tools = listAt(body, 'tools');
  const faults = tools.flatMap((tool, i) =>
    unknownFaults(Object.keys(objectAt(tool, 'function')), functionMembers, [
      'tools',
      i,
      'function',
    ]),
  );
  const orphan = tools.length === 0 && toolChoices !== undefined;
  for (const name of ['tool_choice', 'parallel_tool_calls']) {
    if (orphan && body[name] !== undefined) faults.push({ kind: 'unsupported', path: [name] });
  }
  return faults;
}

function messageFaults(rules: VendorRules, messages: readonly JsonObject[]): Fault[] {
  const called = new Set<Json>();
  return messages.flatMap((message, i) => {
    const path: Path = ['messages', i];
    const role = String(message['role']);
    if (!rules.roles.includes(role)) return [{ kind: 'role', path: [...path, 'role'] }];
    const late = role === 'system' && rules.system === 'first' && i > 0;
    return [
      ...(late ? [{ kind: 'system', path } as const] : []),
      ...unknownFaults(Object.keys(message), rules.messageMembers?.[role], path),
      ...contentFaults(rules, message, path),
      ...idFaults(rules, message, { path, called }),
      ...(role === 'assistant' ? (rules.history?.(message, path) ?? []) : []),
    ];
  });
}

function orderFaults({ order }: VendorRules, messages: readonly JsonObject[]): Fault[] {
  if (order === undefined) return [];
  const roleAt = (i: number): string => {
    const { role, prefix } = messages[i] ?? {};
    return prefix === true ? 'prefix' : String(role);
  };
  const faults: Fault[] = [];
  messages.forEach((_, i) => {
    const taken = order.after[roleAt(i - 1)];
    if (i > 0 && taken?.includes(roleAt(i)) === false) {
      faults.push({ kind: 'order', path: ['messages', i], taken: taken.join(', ') });
    }
  });
  const last = messages.length - 1;
  if (!order.last.includes(roleAt(last))) faults.push({ kind: 'order', path: ['messages', last] });
  return faults;
}

/** The member of a part that holds what its type says. */
const ownMember: { readonly [type: string]: string } = { input_audio: 'input_audio', file: 'file' };

function contentFaults(rules: VendorRules, message: JsonObject, path: Path): Fault[] {
  const { role, content } = message;
  if (content === undefined || content === null) {
    const called = Array.isArray(message['tool_calls']) || message['function_call'] !== undefined;
    const refused = typeof message['refusal'] === 'string';
    if (role === 'assistant' && (called || refused)) return [];
    return [{ kind: 'missing', path: [...path, 'content'] }];
  }
  return listAt(message, 'content').flatMap((part, j) => {
    const at: Path = [...path, 'content', j];
    const type = String(part['type']);
    const known = rules.partMembers && [
      'type',
      ownMember[type] ?? type,
      ...(type === 'image_url' ? ['image_url'] : []),
      ...rules.partMembers,
    ];
    return [...unknownFaults(Object.keys(part), known, at), ...mediaFaults(rules, role, part, at)];
  });
}

function mediaFaults(
  { images }: VendorRules,
  role: Json | undefined,
  part: JsonObject,
  path: Path,
): Fault[] {
  if (part['type'] !== 'image_url') return [];
  const url = String(objectAt(part, 'image_url')['url'] ?? part['image_url']);
  const taken = images === 'url' || (images === 'base64' && url.startsWith('data:'));
  return taken && role === 'user' ? [] : [{ kind: 'media', path }];
}

interface Calls {
  readonly path: Path;
  readonly called: Set<Json>;
}

/** Each result answers a call by its id, and ids have the vendor's form. */
function idFaults({ callIds }: VendorRules, message: JsonObject, { path, called }: Calls): Fault[] {
  const faults: Fault[] = [];
  listAt(message, 'tool_calls').forEach(({ id = null }, j) => {
    called.add(id);
    if (callIds?.test(String(id)) === false) {
      faults.push({ kind: 'id', path: [...path, 'tool_calls', j, 'id'] });
    }
  });
  if (message['role'] === 'tool' && !called.has(message['tool_call_id'] ?? null)) {
    faults.push({ kind: 'id', path: [...path, 'tool_call_id'] });
  }
  return faults;
}
