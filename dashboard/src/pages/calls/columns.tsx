/** The columns that a table of calls can have, and which of them this browser shows. */
import { useCallback, useMemo, useState } from 'react';
import { endpointNames, firstTokenMs, outputSpeed, type Call } from '../../api/calls.ts';
import { useKeyNames } from '../../api/names.ts';
import { CutText } from '../../components/cut-text.tsx';
import type { Column } from '../../components/data-table.tsx';
import { exactMoney, roughMoney } from '../../format/money.ts';
import { count, speed } from '../../format/number.ts';
import { fullMoment, moment, span } from '../../format/time.ts';
import { OutcomeBadge } from './outcome-badge.tsx';

export interface CallColumn extends Column<Call> {
  /** Narrowest width, rem. */
  readonly rem: number;
  /** Shown until the person chooses columns. */
  readonly standard: boolean;
}

type KeyName = (id: string) => string;

/** Text that takes a share of what width is left. */
function wide(
  id: string,
  title: string,
  [rem, share]: readonly [rem: number, share: number],
  cell: CallColumn['cell'],
): CallColumn {
  return { id, title, width: `minmax(${rem}rem, ${share}fr)`, cell, rem, standard: true };
}

function fixed(id: string, title: string, rem: number, cell: CallColumn['cell']): CallColumn {
  return { id, title, width: `${rem}rem`, cell, rem, standard: true };
}

function number(...column: Parameters<typeof fixed>): CallColumn {
  return { ...fixed(...column), align: 'end' };
}

/** Of those that have to be chosen. */
function further(column: CallColumn): CallColumn {
  return { ...column, standard: false };
}

/** All of them, in their order. */
function columnsOf(keyName: KeyName): readonly CallColumn[] {
  return [
    fixed('time', 'Time', 8, ({ started_at: at }) => (
      <time title={fullMoment(at)}>{moment(at)}</time>
    )),
    fixed('outcome', 'Outcome', 9.75, (call) => <OutcomeBadge call={call} />),
    wide('model', 'Model', [5.75, 2], ({ model }) => <CutText text={model} />),
    wide('provider', 'Answered by', [9.25, 3], (call) => <CutText text={answeredBy(call)} />),
    wide('key', 'Key', [5.5, 4], ({ key }) => <CutText text={keyName(key)} />),
    further(wide('team', 'Team', [6, 1], ({ team }) => <CutText text={team ?? '–'} />)),
    further(wide('user', 'User', [6, 1], ({ user }) => <CutText text={user ?? '–'} />)),
    further(
      wide('tags', 'Tags', [6, 1], ({ tags }) => (
        <CutText text={tags.length === 0 ? '–' : tags.join(', ')} />
      )),
    ),
    further(
      fixed('endpoint', 'Endpoint', 9, ({ endpoint }) => endpointNames[endpoint] ?? endpoint),
    ),
    number('input', 'Input', 4.25, ({ charged }) => count(inputOf(charged))),
    further(number('cached', 'Cached', 5, ({ charged }) => count(charged.cache_read_tokens))),
    number('output', 'Output', 4.25, ({ charged }) => count(charged.output_tokens)),
    further(
      number('reasoning', 'Reasoning', 5.5, ({ charged }) => count(charged.reasoning_tokens)),
    ),
    number('cost', 'Cost', 5, ({ cost_usd: cost }) => (
      <span title={exactMoney(cost)}>{roughMoney(cost)}</span>
    )),
    number('first', 'First token', 5, (call) => span(firstTokenMs(call))),
    number('ms', 'Total', 4.75, (call) => span(call.total_ms)),
    further(number('speed', 'Tokens/s', 5, (call) => speed(outputSpeed(call)))),
    further(number('attempts', 'Attempts', 5, ({ attempts }) => count(attempts))),
    further(wide('id', 'Request id', [10, 1], ({ id }) => <CutText text={id} />)),
    further(wide('notes', 'Notes', [10, 2], ({ notes }) => <CutText text={notes ?? '–'} />)),
  ];
}

/** Provider and its model; a dash where no upstream was asked. */
function answeredBy(call: Call): string {
  if (call.provider === null) return '–';
  const tries = call.attempts > 1 ? ` (${call.attempts} attempts)` : '';
  return `${call.provider}/${call.upstream_model ?? ''}${tries}`;
}

/** Null where no part is known. */
export function inputOf(counts: Call['charged']): number | null {
  const parts = [counts.fresh_input_tokens, counts.cache_read_tokens, counts.cache_write_tokens];
  const known = parts.filter((part) => part !== null);
  return known.length === 0 ? null : known.reduce((sum, part) => sum + part, 0);
}

const storageKey = 'model-gateway-call-columns';

/** Ids; a browser that keeps nothing, or something else, shows the standard ones. */
function storedChoice(): readonly string[] | undefined {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey) ?? 'null');
    return Array.isArray(stored) ? stored.map(String) : undefined;
  } catch {
    return undefined;
  }
}

export interface ColumnChoice {
  readonly all: readonly CallColumn[];
  readonly shown: readonly CallColumn[];
  /** Ids of those to show; undefined: the standard ones. */
  readonly choose: (ids: readonly string[] | undefined) => void;
}

/** The columns, with the names of keys, as this browser wants them. */
export function useColumns(): ColumnChoice {
  const keys = useKeyNames();
  const [ids, setIds] = useState(storedChoice);
  const all = useMemo(() => {
    const known = new Map(keys.data?.map(({ id, name }) => [id, name]));
    return columnsOf((id) => known.get(id) ?? id);
  }, [keys.data]);
  const shown = useMemo(() => {
    const chosen = all.filter(({ id }) => ids?.includes(id));
    return chosen.length === 0 ? all.filter(({ standard }) => standard) : chosen;
  }, [all, ids]);
  const choose = useCallback((wanted: readonly string[] | undefined) => {
    setIds(wanted);
    try {
      if (wanted === undefined) localStorage.removeItem(storageKey);
      else localStorage.setItem(storageKey, JSON.stringify(wanted));
    } catch {
      // Private windows may refuse: it holds until the page is closed.
    }
  }, []);
  return { all, shown, choose };
}
