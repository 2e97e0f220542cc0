/** The calls of a filter, from the ledger or as they end, and the details of the one that is open. */
import { useState, type ReactElement } from 'react';
import type { Call, CallFilter } from '../../api/calls.ts';
import { Button } from '../../components/button.tsx';
import { Panel } from '../../components/panel.tsx';
import { Empty, QueryState } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import { moment } from '../../format/time.ts';
import { useCallPages } from './call-pages.ts';
import { CallTable, RowTable } from './call-table.tsx';
import type { CallColumn } from './columns.tsx';
import { Details, type Step } from './details.tsx';
import styles from './page.module.css';
import { useLiveCalls, type LiveCalls } from './use-live-calls.ts';

interface CallListProps {
  /** Stays the same for as long as the list is there. */
  readonly filter: CallFilter;
  readonly columns: readonly CallColumn[];
  /** Of the call whose details are shown. */
  readonly openId: string | undefined;
  /** Shows the details of a call; '' none. `isStep`: from those of another. */
  readonly onOpen: (id: string, isStep?: boolean) => void;
}

/** Newest first, from the ledger. */
export function LedgerCalls({ filter, columns, openId, onOpen }: CallListProps): ReactElement {
  const pages = useCallPages(filter);
  const at = openId === undefined ? undefined : pages.indexOf(openId);
  const { previous, next } = stepsFrom(at, pages.rowAt, (call, index) => {
    pages.onLook(index);
    onOpen(call.id, true);
  });
  return (
    <>
      <Panel flush>
        <CallTable
          pages={pages}
          isFiltered={Object.keys(filter).length > 0}
          columns={columns}
          selected={openId}
          onOpen={({ id }) => onOpen(id)}
        />
      </Panel>
      {openId === undefined ? null : (
        <Details id={openId} onClose={() => onOpen('')} previous={previous} next={next} />
      )}
    </>
  );
}

/** As they end, the last one first. */
export function EndingCalls({ filter, columns, openId, onOpen }: CallListProps): ReactElement {
  const [isPaused, setPaused] = useState(false);
  const live = useLiveCalls(filter, isPaused);
  const rows = live.data?.rows ?? [];
  const at = openId === undefined ? -1 : rows.findIndex(({ id }) => id === openId);
  const { previous, next } = stepsFrom(
    at === -1 ? undefined : at,
    (index) => rows[index],
    ({ id }) => onOpen(id, true),
  );
  return (
    <>
      <Panel flush>
        <QueryState query={live}>
          {(calls) => (
            <>
              <LiveBar calls={calls} isPaused={isPaused} onPause={setPaused} />
              {calls.rows.length === 0 ? (
                <Empty title="No calls yet">Calls appear here when they end.</Empty>
              ) : (
                <RowTable
                  columns={columns}
                  count={calls.rows.length}
                  rowAt={(index) => calls.rows[index]}
                  selected={openId}
                  onOpen={({ id }) => onOpen(id)}
                />
              )}
            </>
          )}
        </QueryState>
      </Panel>
      {openId === undefined ? null : (
        <Details id={openId} onClose={() => onOpen('')} previous={previous} next={next} />
      )}
    </>
  );
}

interface LiveBarProps {
  readonly calls: LiveCalls;
  readonly isPaused: boolean;
  readonly onPause: (isPaused: boolean) => void;
}

function LiveBar({ calls, isPaused, onPause }: LiveBarProps): ReactElement {
  const { ended, lost, since, rows } = calls;
  const begun = moment(new Date(since).toISOString());
  return (
    <div className={styles.live}>
      <span className={isPaused ? styles.pausedDot : styles.liveDot} aria-hidden="true" />
      <span>{`${count(ended)} ${ended === 1 ? 'call has' : 'calls have'} ended since ${begun}.`}</span>
      {ended > rows.length ? <span>{`The last ${rows.length} are shown.`}</span> : null}
      {lost === 0 ? null : <span>{`${count(lost)} more came too fast to be shown.`}</span>}
      <Button small onClick={() => onPause(!isPaused)}>
        {isPaused ? 'Resume' : 'Pause'}
      </Button>
    </div>
  );
}

/** @param at index of the call whose details are shown; undefined: it is not in the list */
function stepsFrom(
  at: number | undefined,
  rowAt: (index: number) => Call | undefined,
  go: (call: Call, index: number) => void,
): Step {
  const step = (by: number): (() => void) | undefined => {
    const index = (at ?? 0) + by;
    const call = at === undefined || index < 0 ? undefined : rowAt(index);
    return call === undefined ? undefined : () => go(call, index);
  };
  return { previous: step(-1), next: step(1) };
}
