/** What can be called, and how those are who answer. */
import { useMemo, useState, type ReactElement } from 'react';
import { useOpened } from '../../api/search.ts';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { TextField } from '../../components/field.tsx';
import layout from '../../components/layout.module.css';
import { Panel } from '../../components/panel.tsx';
import { Empty, Failures, QueryState } from '../../components/state.tsx';
import {
  useAllPrices,
  useModels,
  type Model,
  type Rates,
  type TargetPrice,
} from '../../api/models.ts';
import { useSeries, type SeriesGroup } from '../../api/series.ts';
import { count, percent, shortCount } from '../../format/number.ts';
import { span } from '../../format/time.ts';
import { DayStrip, faulty } from './day-strip.tsx';
import { HealthBadge, worstHealth } from './health.tsx';
import { ModelSheet } from './model-sheet.tsx';
import styles from './models.module.css';
import { RouteCell } from './route.tsx';

/** A model with what is known of its last day. */
interface Row {
  readonly model: Model;
  readonly prices: readonly TargetPrice[];
  /** Null: no calls; undefined: not known. */
  readonly day: SeriesGroup | null | undefined;
  /** When the day was requested. */
  readonly now: number;
}

const columns: readonly Column<Row>[] = [
  {
    id: 'id',
    title: 'Model',
    width: 'minmax(9rem, 2fr)',
    cell: ({ model }) => <CutText text={model.id} />,
  },
  {
    id: 'targets',
    title: 'Answered by',
    width: 'minmax(10rem, 3fr)',
    cell: ({ model }) => <RouteCell model={model} />,
  },
  {
    id: 'health',
    title: 'Health',
    width: 'minmax(6rem, 1fr)',
    cell: ({ model }) => <HealthBadge health={worstHealth(model)} />,
  },
  {
    id: 'price',
    title: 'In / out, $/M',
    width: '6.5rem',
    align: 'end',
    cell: ({ prices }) => <PriceCell prices={prices} />,
  },
  {
    id: 'window',
    title: 'Window',
    width: '4.5rem',
    align: 'end',
    cell: ({ model: { max_input_tokens: tokens } }) => (
      <span title={tokens === null ? 'unknown' : `${count(tokens)} tokens`}>
        {tokens === null ? '–' : shortCount(tokens)}
      </span>
    ),
  },
  {
    id: 'calls',
    title: 'Calls, 24 h',
    width: '6rem',
    align: 'end',
    cell: ({ day }) => count(day === null ? 0 : day?.calls),
  },
  {
    id: 'p50',
    title: 'p50',
    width: '4.5rem',
    align: 'end',
    cell: ({ day }) => span(day?.p50_ms),
  },
  {
    id: 'errors',
    title: 'Errors',
    width: '4.5rem',
    align: 'end',
    cell: ({ day }) => <ErrorRate day={day} />,
  },
  {
    id: 'day',
    title: 'Last 24 hours',
    width: '10rem',
    align: 'end',
    cell: ({ day, now }) =>
      day === undefined ? '–' : <DayStrip points={day?.points ?? []} now={now} />,
  },
];

/** Failures of providers and the gateway; refusals of clients and limits say nothing of a model. */
function ErrorRate({ day }: Pick<Row, 'day'>): ReactElement {
  if (day === undefined || day === null) return <>–</>;
  const others = day.failed_client + day.failed_limit;
  const title = `${count(faulty(day))} of ${count(day.calls)} calls failed at the provider or the gateway; ${count(others)} more were refused for their request or a limit`;
  return <span title={title}>{percent(faulty(day), day.calls)}</span>;
}

/** Of the first target; those of all are in the title. */
function PriceCell({ prices }: { readonly prices: readonly TargetPrice[] }): ReactElement {
  const first = prices[0]?.price ?? null;
  const title = prices.map(({ target, price }) => `${target}: ${rateText(price)}`).join('\n');
  return <span title={title}>{rateText(first)}</span>;
}

function rateText(price: Rates | null): string {
  return price === null ? '–' : `${rate(price.input)} / ${rate(price.output)}`;
}

const rates = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });

function rate(dollars: number): string {
  return rates.format(dollars);
}

/** The API returns no more groups of a series. */
const maxGroups = 50;

export function ModelList(): ReactElement {
  const query = useModels();
  const [text, setText] = useState('');
  const opened = useOpened('model');
  const part = text.trim().toLowerCase();
  const allPrices = useAllPrices();
  const prices = allPrices.data;
  const day = useSeries({ since: '24h', by: 'model', step: 'hour', groups: maxGroups }, 30_000);
  const { data: series, dataUpdatedAt: now } = day;
  const rows = useMemo(() => {
    const days = new Map(series?.groups.map((group) => [group.name, group]));
    // A model that is not in a full list of groups may have calls.
    const without = series === undefined || series.groups.length === maxGroups ? undefined : null;
    const found = query.data?.models.filter(({ id }) => id.toLowerCase().includes(part)) ?? [];
    return found.map((model): Row => ({
      model,
      prices: prices?.get(model.id) ?? [],
      day: days.get(model.id) ?? without,
      now,
    }));
  }, [query.data, part, prices, series, now]);
  const shown = query.data?.models.find(({ id }) => id === opened.id);
  return (
    <Panel flush>
      <div className={layout.tools}>
        <TextField
          label="Find models"
          quietLabel
          type="search"
          placeholder="Find by name"
          value={text}
          onChange={setText}
        />
      </div>
      <QueryState query={query}>
        {({ problems }) => (
          <>
            <Failures of={[allPrices, day]} />
            {rows.length === 0 ? (
              <Empty title="No model name contains this text" />
            ) : (
              <DataTable
                label="Models"
                columns={columns}
                count={rows.length}
                rowAt={(index) => rows[index]}
                rowKey={({ model }) => model.id}
                onOpen={({ model }) => opened.open(model.id)}
                selected={opened.id}
                minWidth="62rem"
              />
            )}
            {problems.length === 0 ? null : (
              <ul className={styles.list} aria-label="Files that cannot be used">
                {problems.map(({ subject, why }) => (
                  <li key={subject} className={layout.muted}>
                    {subject}: {why}
                  </li>
                ))}
              </ul>
            )}
          </>
        )}
      </QueryState>
      {shown === undefined ? null : <ModelSheet model={shown} onClose={opened.close} />}
      {opened.id !== undefined && query.isSuccess && shown === undefined ? (
        <Dialog open onClose={opened.close} title={opened.id} shape="side">
          <Empty title="Model not found">It may have been renamed or removed.</Empty>
        </Dialog>
      ) : null}
    </Panel>
  );
}
