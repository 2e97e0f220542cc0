/** Where the palette can go, for a text: pages, what can be made, and things by their names. */
import { useQuery } from '@tanstack/react-query';
import { get } from '../api/client.ts';
import { keyMakers, type Role, usePageSession, viewers } from '../api/session.ts';
import type { IconName } from '../components/icon.tsx';
import { pagesOf } from '../pages/pages.ts';

export interface Place {
  readonly group: string;
  readonly name: string;
  /** What distinguishes it from others of the same name. */
  readonly about?: string;
  readonly href: string;
  readonly icon: IconName;
  /** It opens a window over its page, which takes the focus. */
  readonly isWindow: boolean;
}

/** Of each kind: more are found by typing on. */
const maxOfKind = 6;

/** Places whose names contain the text; without one, the pages. */
export function usePlaces(text: string): {
  readonly places: readonly Place[];
  readonly isAsking: boolean;
} {
  const isWanted = text !== '';
  const roles = usePageSession()?.roles ?? [];
  const seesAll = roles.some((role) => isOneOf(viewers, role));
  const keys = useNames(`/api/keys`, { text, limit: maxOfKind }, isWanted);
  const teams = useNames('/api/teams', { limit: 1000 }, isWanted);
  const tags = useNames('/api/tags', { limit: 1000 }, isWanted && seesAll);
  // Found models open on a page that members of teams do not have.
  const models = useNames('/api/models', {}, isWanted && seesAll);
  const found = [
    ...fixedPlaces(roles).filter(({ name }) => contains(name, text)),
    ...callPlaces(text),
    ...(isWanted ? keyPlaces(keys.data?.keys) : []),
    ...named(team, names(teams.data?.teams), text),
    ...named(tag, names(tags.data?.tags), text),
    ...named(model, ids(models.data?.models), text),
  ];
  const asked = [keys, teams, tags, models];
  return { places: found, isAsking: asked.some(({ isFetching }) => isFetching) };
}

function isOneOf(wanted: readonly Role[], role: Role): boolean {
  return wanted.includes(role);
}

function fixedPlaces(roles: readonly Role[]): readonly Place[] {
  const places = pagesOf(roles).map(({ title, path, icon }): Place => ({
    group: 'Pages',
    name: title,
    href: path,
    icon,
    isWindow: false,
  }));
  return roles.some((role) => isOneOf(keyMakers, role)) ? [...places, createKey] : places;
}

const createKey: Place = {
  group: 'Actions',
  name: 'Create a key',
  href: '/keys?new=key',
  icon: 'plus',
  isWindow: true,
};

interface Found {
  readonly keys?: readonly FoundKey[];
  readonly teams?: readonly { readonly name: string }[];
  readonly tags?: readonly { readonly name: string }[];
  readonly models?: readonly { readonly id: string }[];
}

interface FoundKey {
  readonly id: string;
  readonly name: string;
  readonly state: string;
}

function useNames(
  path: string,
  query: { readonly [name: string]: string | number },
  enabled: boolean,
) {
  return useQuery({
    queryKey: ['palette', path, query],
    queryFn: ({ signal }) => get<Found>(path, { query, signal }),
    staleTime: 30_000,
    enabled,
  });
}

const names = (found: readonly { readonly name: string }[] = []): readonly string[] =>
  found.map(({ name }) => name);
const ids = (found: readonly { readonly id: string }[] = []): readonly string[] =>
  found.map(({ id }) => id);

function keyPlaces(keys: readonly FoundKey[] = []): readonly Place[] {
  return keys.map(({ id, name, state }) => ({
    group: 'Keys',
    name,
    about: state === 'active' ? id : `${id}, ${state}`,
    href: `/keys?key=${encodeURIComponent(id)}`,
    icon: 'keys',
    isWindow: true,
  }));
}

interface Kind {
  readonly group: string;
  readonly about: string;
  /** Address up to the name. */
  readonly start: string;
  readonly icon: IconName;
}

const team: Kind = { group: 'Teams', about: 'team', start: '/keys?team=', icon: 'keys' };
const tag: Kind = { group: 'Tags', about: 'tag', start: '/keys?tag=', icon: 'keys' };
const model: Kind = { group: 'Models', about: 'model', start: '/models?model=', icon: 'models' };

function named(kind: Kind, all: readonly string[], text: string): readonly Place[] {
  const { group, about, start, icon } = kind;
  return all
    .filter((name) => text !== '' && contains(name, text))
    .slice(0, maxOfKind)
    .map((name) => ({
      group,
      name,
      about,
      href: start + encodeURIComponent(name),
      icon,
      isWindow: true,
    }));
}

/** A request id names its call, whether or not it is in the ledger yet: the page says. */
function callPlaces(text: string): readonly Place[] {
  if (!/^req_\w+$/.test(text)) return [];
  return [{ group: 'Calls', name: text, href: `/calls/${text}`, icon: 'calls', isWindow: true }];
}

function contains(name: string, text: string): boolean {
  return name.toLowerCase().includes(text.toLowerCase());
}
