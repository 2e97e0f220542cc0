/** The ledger: every call, found by filters, and what happened in each. */
import { useMemo, useState, type ReactElement } from 'react';
import { useLocation, useSearch as useSearchText } from 'wouter';
import { useNewestCall, type CallFilter } from '../../api/calls.ts';
import { addressOf } from '../../api/client.ts';
import { useSearch } from '../../api/search.ts';
import { useMay, viewers } from '../../api/session.ts';
import { Button, DownloadLink } from '../../components/button.tsx';
import { PageHead } from '../../components/panel.tsx';
import { EndingCalls, LedgerCalls } from './call-lists.tsx';
import { ColumnDialog } from './column-dialog.tsx';
import { useColumns } from './columns.tsx';
import { pathOf } from './details.tsx';
import { filterOf, Filters } from './filters.tsx';
import styles from './page.module.css';

const liveMs = 5_000;

export function CallsPage(): ReactElement {
  const [search, change] = useSearch();
  const [location, navigate] = useLocation();
  const searchText = useSearchText();
  const [, , openPart = ''] = location.split('/');
  const openId = openPart === '' ? undefined : decoded(openPart);
  // A point in time and not a counter: coming back to the page must not find an old list.
  const [since, setSince] = useState(() => Date.now());
  const [isChoosing, setChoosing] = useState(false);
  const columns = useColumns();
  const filter = useMemo(() => filterOf(search), [search]);
  // Export and tail are of the whole gateway: members of teams do not have them.
  const seesAll = useMay(viewers);
  const isLive = seesAll && search['live'] !== undefined;
  const list = `${since} ${JSON.stringify(filter)}`;
  const open = (id: string, isStep = false): void => {
    const path = id === '' ? '/calls' : pathOf(id);
    const replace = id === '' || isStep;
    navigate(searchText === '' ? path : `${path}?${searchText}`, { replace });
  };
  const shown = { filter, columns: columns.shown, openId, onOpen: open };
  return (
    <>
      <PageHead
        title="Calls"
        about={isLive ? 'As they end on this gateway, the last one first.' : 'Newest first.'}
        actions={
          <>
            {seesAll ? <Exports filter={filter} /> : null}
            <Button icon="columns" onClick={() => setChoosing(true)}>
              Columns
            </Button>
            {seesAll ? (
              <Button
                aria-pressed={isLive}
                onClick={() => change({ live: isLive ? undefined : '1' })}
              >
                <span className={isLive ? styles.liveDot : styles.pausedDot} aria-hidden="true" />
                Live
              </Button>
            ) : null}
            {isLive ? null : (
              <NewCalls list={list} filter={filter} onShow={() => setSince(Date.now())} />
            )}
          </>
        }
      />
      <Filters search={search} change={change} onFind={open} />
      {isLive ? <EndingCalls key={list} {...shown} /> : <LedgerCalls key={list} {...shown} />}
      <ColumnDialog columns={columns} open={isChoosing} onClose={() => setChoosing(false)} />
    </>
  );
}

/** A mistyped value in an address is searched as it is, and not found. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** All calls of the filter as a file. */
function Exports({ filter }: { readonly filter: CallFilter }): ReactElement {
  const href = (format: string): string => addressOf('/api/calls/export', { ...filter, format });
  return (
    <>
      <DownloadLink href={href('csv')}>CSV</DownloadLink>
      <DownloadLink href={href('json')}>JSON</DownloadLink>
    </>
  );
}

interface NewCallsProps {
  readonly list: string;
  readonly filter: CallFilter;
  readonly onShow: () => void;
}

/** The newest call when a list was shown first; null: there was none. */
interface Seen {
  readonly list: string;
  readonly newest: string | null;
}

/** The table does not move while it is read; this shows when there are newer calls. */
function NewCalls({ list, filter, onShow }: NewCallsProps): ReactElement {
  const newest = useNewestCall(list, filter, liveMs);
  // Of this list. Another list does not make another button, which would lose the focus.
  const [seen, setSeen] = useState<Seen>();
  const first = seen?.list === list ? seen.newest : undefined;
  if (first === undefined && newest.data !== undefined) setSeen({ list, newest: newest.data });
  const isNew = first !== undefined && newest.data !== undefined && newest.data !== first;
  return (
    <Button icon="refresh" look={isNew ? 'primary' : 'plain'} onClick={onShow}>
      {isNew ? 'Show new calls' : 'Refresh'}
    </Button>
  );
}
