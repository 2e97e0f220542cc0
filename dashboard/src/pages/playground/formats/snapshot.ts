/**
 * What is in the playground, to be stored in this browser or shared by a link: settings, conversations, the message that
 * is being written. Never a key. What is read may come from anybody: it is checked, and nothing is sent by itself.
 */
import { isRecord } from './request.ts';
import {
  endpoints,
  noSettings,
  type CallSettings,
  type Picture,
  type Turn,
  type UserTurn,
} from './turns.ts';

export type ModelSettings = Omit<CallSettings, 'model'>;

export interface Snapshot {
  readonly settings: ModelSettings;
  readonly sides: readonly { readonly model: string; readonly turns: readonly Turn[] }[];
  readonly draft: UserTurn;
}

/** Of models that are compared. */
export const maxModels = 4;

/** Undefined: it is none. Members that it lacks are as in a new playground, others are dropped. */
export function readSnapshot(value: unknown): Snapshot | undefined {
  if (!isRecord(value) || !isRecord(value['settings'])) return undefined;
  const sides = listOf(value['sides'], readSide);
  const draft = readTurn(value['draft']);
  if (sides === undefined || sides.length === 0 || sides.length > maxModels) return undefined;
  if (draft?.role !== 'user') return undefined;
  const { model: _model, ...settings } = readSettings(value['settings']);
  return { settings, sides, draft };
}

function readSettings(given: Readonly<Record<string, unknown>>): CallSettings {
  const endpoint = endpoints.find((each) => each === given['endpoint']) ?? noSettings.endpoint;
  const known = Object.entries(noSettings).map(([name, standard]) => {
    const value = given[name];
    return [name, typeof value === typeof standard ? value : standard] as const;
  });
  // Names and types are those of `noSettings`.
  return { ...(Object.fromEntries(known) as unknown as CallSettings), endpoint };
}

function readSide(value: unknown): Snapshot['sides'][number] | undefined {
  if (!isRecord(value) || typeof value['model'] !== 'string') return undefined;
  const turns = listOf(value['turns'], readTurn);
  return turns === undefined ? undefined : { model: value['model'], turns };
}

function readTurn(value: unknown): Turn | undefined {
  if (!isRecord(value)) return undefined;
  const { role } = value;
  if (role === 'tool') {
    const results = listOf(value['results'], (each) => textsOf(each, ['id', 'text']));
    return results === undefined ? undefined : { role, results };
  }
  if (role === 'user') {
    const said = textsOf(value, ['text']);
    const pictures = listOf(value['pictures'], readPicture);
    return said === undefined || pictures === undefined ? undefined : { role, ...said, pictures };
  }
  if (role !== 'assistant') return undefined;
  const said = textsOf(value, ['text', 'reasoning']);
  const calls = listOf(value['calls'], (each) => textsOf(each, ['id', 'name', 'arguments']));
  return said === undefined || calls === undefined ? undefined : { role, ...said, calls };
}

/** It becomes an address of the page: of images only. */
function readPicture(value: unknown): Picture | undefined {
  const picture = textsOf(value, ['name', 'type', 'base64']);
  const isImage = /^image\/(png|jpeg|gif|webp)$/.test(picture?.type ?? '');
  return isImage && /^[\w+/=]*$/.test(picture?.base64 ?? '-') ? picture : undefined;
}

function textsOf<Name extends string>(
  value: unknown,
  names: readonly Name[],
): { readonly [N in Name]: string } | undefined {
  if (!isRecord(value) || names.some((name) => typeof value[name] !== 'string')) return undefined;
  return Object.fromEntries(names.map((name) => [name, value[name]])) as { [N in Name]: string };
}

/** Undefined where one of them is nothing that can be read. */
function listOf<Item>(
  value: unknown,
  read: (each: unknown) => Item | undefined,
): readonly Item[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const items = (value as readonly unknown[]).map(read);
  const known = items.filter((item) => item !== undefined);
  return known.length === items.length ? known : undefined;
}
