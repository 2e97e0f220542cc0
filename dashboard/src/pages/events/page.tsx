/** What happened to the gateway since its start, and whether webhooks got it. */
import type { ReactElement } from 'react';
import { useSearch, useOpened, type Search } from '../../api/search.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { CodeBlock } from '../../components/code-block.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { SelectField } from '../../components/field.tsx';
import layout from '../../components/layout.module.css';
import { Facts, PageHead, Panel } from '../../components/panel.tsx';
import { Empty, QueryState } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import { ago, fullMoment, minute, moment } from '../../format/time.ts';
import { useEvents, type EventList, type GatewayEvent } from './api.ts';
import { WebhookPanel } from './webhooks.tsx';

const severities = [
  { value: '', label: 'Every severity' },
  { value: 'warning', label: 'Warnings and errors' },
  { value: 'error', label: 'Errors' },
];

const groups = [
  { value: '', label: 'All subjects' },
  { value: 'target', label: 'Providers and models' },
  { value: 'credential', label: 'Credentials' },
  { value: 'budget', label: 'Budgets' },
  { value: 'store', label: 'Store' },
  { value: 'overload', label: 'Overload' },
  { value: 'config', label: 'Configuration' },
  { value: 'webhook', label: 'Webhooks' },
];

export function EventsPage(): ReactElement {
  const [search, change] = useSearch();
  return (
    <>
      <PageHead
        title="Events"
        about="Events since this gateway started, and their delivery to webhooks."
      />
      <div className={layout.stack}>
        <EventPanel search={search} change={change} />
        <WebhookPanel />
      </div>
    </>
  );
}

interface EventPanelProps {
  readonly search: Search;
  readonly change: (change: Search) => void;
}

function EventPanel({ search, change }: EventPanelProps): ReactElement {
  const { group = '', severity = '' } = search;
  const query = useEvents(search['group'], search['severity']);
  return (
    <Panel
      title="Events"
      flush
      actions={
        <>
          <SelectField
            label="Severity"
            quietLabel
            value={severity}
            choices={severities}
            onChange={(chosen) => change({ severity: chosen })}
          />
          <SelectField
            label="Subject"
            quietLabel
            value={group}
            choices={groups}
            onChange={(chosen) => change({ group: chosen })}
          />
        </>
      }
    >
      <QueryState query={query}>
        {(list) => <EventTable list={list} isFiltered={group + severity !== ''} />}
      </QueryState>
    </Panel>
  );
}

function toneOf({ severity, resolved }: GatewayEvent): Tone {
  if (resolved) return 'good';
  return severity === 'error' ? 'bad' : severity === 'warning' ? 'warn' : 'neutral';
}

const columns: readonly Column<GatewayEvent>[] = [
  { id: 'at', title: 'When', width: '9.5rem', cell: ({ at }) => moment(at) },
  {
    id: 'type',
    title: 'Event',
    width: '11rem',
    cell: (event) => <Badge tone={toneOf(event)} text={event.type} />,
  },
  {
    id: 'text',
    title: 'What happened',
    width: 'minmax(16rem, 1fr)',
    cell: ({ text }) => <CutText text={text} />,
  },
];

interface EventTableProps {
  readonly list: EventList;
  readonly isFiltered: boolean;
}

function EventTable({ list, isFiltered }: EventTableProps): ReactElement {
  const { events, since, forgotten } = list;
  const opened = useOpened('event');
  const open = events.find(({ seq }) => String(seq) === opened.id);
  return (
    <>
      {events.length === 0 ? (
        <Empty title={isFiltered ? 'No event fits' : 'No events yet'}>
          {isFiltered
            ? 'Choose another severity or subject.'
            : 'Open circuit breakers, refused credentials, budgets near their end and reloads appear here.'}
        </Empty>
      ) : (
        <DataTable
          label="Events"
          columns={columns}
          count={events.length}
          rowAt={(index) => events[index]}
          rowKey={({ seq }) => String(seq)}
          onOpen={({ seq }) => opened.open(String(seq))}
          selected={opened.id}
          minWidth="40rem"
        />
      )}
      {since === null ? null : (
        <p className={layout.note}>
          In memory since this gateway started, {minute(since)}
          {forgotten === 0 ? '' : `; ${count(forgotten)} older ones were dropped`}. The log has a
          line for each.
        </p>
      )}
      {open === undefined ? null : <EventSheet event={open} onClose={opened.close} />}
    </>
  );
}

interface EventSheetProps {
  readonly event: GatewayEvent;
  readonly onClose: () => void;
}

function EventSheet({ event, onClose }: EventSheetProps): ReactElement {
  const { at, type, subject, text, data } = event;
  return (
    <Dialog open onClose={onClose} shape="side" title={subject} description={text}>
      <div className={layout.sections}>
        <Facts
          facts={[
            ['When', `${fullMoment(at)} (${ago(at)})`],
            ['Event', <Badge key="type" tone={toneOf(event)} text={type} />],
          ]}
        />
        <CodeBlock label="Data of the event" text={JSON.stringify(data, null, 2)} />
      </div>
    </Dialog>
  );
}
