/** Where calls failed: the providers, models, keys, teams or limits with the most of them. */
import type { ReactElement } from 'react';
import { addressOf } from '../../api/client.ts';
import {
  faultColours,
  limitName,
  type ErrorGroup,
  type Facet as FacetName,
  type Fault,
} from '../../api/errors.ts';
import { useKeyNames } from '../../api/names.ts';
import type { Period } from '../../api/period.ts';
import { filterOfGroup } from '../../api/series.ts';
import { BarList } from '../../components/bar-list.tsx';
import { count } from '../../format/number.ts';
import styles from './errors.module.css';

interface FacetProps {
  readonly by: FacetName;
  readonly title: string;
  /** The most first. */
  readonly groups: readonly ErrorGroup[];
  readonly period: Period;
  readonly fault: Fault | undefined;
}

/** Rows of a facet. One more is requested: calls without the property are a group, too. */
export const mostRows = 6;

export function Facet({ by, title, groups, period, fault }: FacetProps): ReactElement {
  const keys = useKeyNames();
  const keyName = (id: string): string => keys.data?.find((key) => key.id === id)?.name ?? id;
  const named = groups.filter(({ name }) => name !== null && name !== undefined);
  if (named.length === 0) return <p className={styles.none}>None.</p>;
  return (
    <BarList
      label={`Errors ${title.toLowerCase()}`}
      colour={fault === undefined ? '--series-8' : faultColours[fault]}
      items={named.slice(0, mostRows).map((group) => ({
        id: group.name ?? '',
        name: shownName(group, by, keyName),
        value: group.calls,
        text: count(group.calls),
        ...(by === 'limit' ? {} : { href: hrefOf(group, by, period, fault) }),
      }))}
    />
  );
}

function shownName(
  { name, key_name: keyName }: ErrorGroup,
  by: FacetName,
  nameOf: (id: string) => string,
): string {
  if (by !== 'limit') return keyName ?? name ?? '';
  const limit = limitName(name ?? '');
  if (limit === undefined) return name ?? '';
  const holder = limit.holder === 'key' ? nameOf(limit.name) : limit.name;
  return `${limit.holder} ${holder}: ${limit.kind}`;
}

function hrefOf(
  { name }: ErrorGroup,
  by: FacetName,
  { since, until }: Period,
  fault: Fault | undefined,
): string {
  const group = filterOfGroup(by, name ?? '');
  return addressOf('/calls', { since, until, outcome: 'failed', fault, ...group });
}
