/** Where calls failed: the providers, models, keys or limits with the most of them. */
import type { ReactElement } from 'react';
import { addressOf } from '../../api/client.ts';
import {
  faultColours,
  limitName,
  useErrors,
  type ErrorGroup,
  type ErrorGrouping,
  type Fault,
} from '../../api/errors.ts';
import { useKeyNames } from '../../api/names.ts';
import type { Period } from '../../api/period.ts';
import { BarList } from '../../components/bar-list.tsx';
import { QueryState } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import styles from './errors.module.css';

interface FacetProps {
  readonly by: ErrorGrouping;
  readonly period: Period;
  readonly fault: Fault | undefined;
  readonly every: number | false;
}

const mostRows = 6;

export function Facet({ by, period, fault, every }: FacetProps): ReactElement {
  const { since, until } = period;
  const found = useErrors({ by, since, until, fault, limit: 50 }, every);
  const keys = useKeyNames();
  const keyName = (id: string): string => keys.data?.find((key) => key.id === id)?.name ?? id;
  return (
    <QueryState query={found}>
      {({ groups }) => {
        const named = groups.filter(({ name }) => name !== null && name !== undefined);
        if (named.length === 0) return <p className={styles.none}>None.</p>;
        return (
          <BarList
            label={`Errors by ${by}`}
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
      }}
    </QueryState>
  );
}

function shownName(
  { name, key_name: keyName }: ErrorGroup,
  by: ErrorGrouping,
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
  by: ErrorGrouping,
  { since, until }: Period,
  fault: Fault | undefined,
): string {
  return addressOf('/calls', { since, until, outcome: 'failed', fault, [by]: name ?? '' });
}
