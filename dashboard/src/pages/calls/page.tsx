/** The ledger: every call, found by filters, and what happened in each. */
import { useMemo, useState, type ReactElement } from 'react';
import { useLocation, useSearch as useSearchText } from 'wouter';
import { useNewestCall } from '../../api/calls.ts';
import { useSearch } from '../../api/search.ts';
import { Button } from '../../components/button.tsx';
import { PageHead, Panel } from '../../components/panel.tsx';
import { CallTable } from './call-table.tsx';
import { Details } from './details.tsx';
import { filterOf, Filters } from './filters.tsx';

const liveMs = 5_000;

export function CallsPage(): ReactElement {
  const [search, change] = useSearch();
  const [location, navigate] = useLocation();
  const searchText = useSearchText();
  const [, , openId] = location.split('/');
  // A point in time and not a counter: coming back to the page must not find an old list.
  const [since, setSince] = useState(() => Date.now());
  const filter = useMemo(() => filterOf(search), [search]);
  const list = `${since} ${JSON.stringify(filter)}`;
  const go = (id: string): void => {
    const path = id === '' ? '/calls' : `/calls/${encodeURIComponent(id)}`;
    navigate(searchText === '' ? path : `${path}?${searchText}`, { replace: id === '' });
  };
  return (
    <>
      <PageHead
        title="Calls"
        about="Newest first."
        actions={
          <NewCalls key={list} list={list} filter={filter} onShow={() => setSince(Date.now())} />
        }
      />
      <Filters search={search} change={change} />
      <Panel flush>
        <CallTable key={list} filter={filter} selected={openId} onOpen={({ id }) => go(id)} />
      </Panel>
      {openId === undefined || openId === '' ? null : (
        <Details id={decoded(openId)} onClose={() => go('')} />
      )}
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

interface NewCallsProps {
  readonly list: string;
  readonly filter: ReturnType<typeof filterOf>;
  readonly onShow: () => void;
}

/** The table stands still while it is read; this tells when there are newer calls. */
function NewCalls({ list, filter, onShow }: NewCallsProps): ReactElement {
  const newest = useNewestCall(list, filter, liveMs);
  const [seen, setSeen] = useState<string | null>();
  if (seen === undefined && newest.data !== undefined) setSeen(newest.data);
  const isNew = seen !== undefined && newest.data !== undefined && newest.data !== seen;
  return (
    <Button icon="refresh" look={isNew ? 'primary' : 'plain'} onClick={onShow}>
      {isNew ? 'Show new calls' : 'Refresh'}
    </Button>
  );
}
