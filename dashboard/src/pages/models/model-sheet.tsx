/** One model: who answers for it, their health, what it costs, and its file where it runs here. */
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { useSeries, type SeriesAnswer } from '../../api/series.ts';
import { operators, useMay } from '../../api/session.ts';
import { BarList } from '../../components/bar-list.tsx';
import { Dialog } from '../../components/dialog.tsx';
import layout from '../../components/layout.module.css';
import { Facts, type Fact } from '../../components/panel.tsx';
import { Failures, QueryState } from '../../components/state.tsx';
import { money } from '../../format/money.ts';
import { count, percent } from '../../format/number.ts';
import { span } from '../../format/time.ts';
import { usePrices, type Model, type Rates } from '../../api/models.ts';
import { bytes } from './bytes.ts';
import styles from './models.module.css';
import { orderText } from './route.tsx';
import { maxAnswered, RoutePicture } from './route-picture.tsx';
import { TestCall } from './test-call.tsx';

interface SheetProps {
  readonly model: Model;
  readonly onClose: () => void;
}

export function ModelSheet({ model, onClose }: SheetProps): ReactElement {
  const { id, targets, local } = model;
  const mayCall = useMay(operators);
  const day = useSeries({ since: '24h', by: 'answered', model: id, groups: maxAnswered }, 30_000);
  return (
    <Dialog open onClose={onClose} title={id} shape="side">
      <div className={layout.sections}>
        <section className={layout.sections} aria-label="Targets">
          <h3>{targets.length === 1 ? 'Target' : `Targets, asked ${orderText(model)}`}</h3>
          <RoutePicture model={model} day={day.data} />
          <Failures of={[day]} />
        </section>
        {mayCall ? <TestCall model={id} /> : null}
        <Facts facts={abilityFacts(model)} />
        <WhereCallsWent day={day.data} />
        <section className={layout.sections} aria-label="Prices">
          <h3>Prices in dollars per million tokens</h3>
          <Prices model={id} />
        </section>
        {local === undefined ? null : (
          <section className={layout.sections} aria-label="Embedded engine">
            <h3>Embedded engine</h3>
            <Facts facts={localFacts(local)} />
          </section>
        )}
        <Link href={`/calls?model=${encodeURIComponent(id)}`}>Calls of this model</Link>
      </div>
    </Dialog>
  );
}

const abilityWords: { readonly [ability: string]: string } = {
  images: 'images',
  files: 'files',
  tools: 'tools',
  reasoning: 'reasoning',
  json_schema: 'JSON Schema output',
  prompt_caching: 'prompt caching',
};

function abilityFacts(model: Model): readonly Fact[] {
  const { abilities, max_input_tokens: window, max_tokens: output } = model;
  const taken = abilities?.map((ability) => abilityWords[ability] ?? ability).join(', ');
  return [
    ['Context window', window === null ? 'unknown' : `${count(window)} tokens`],
    ['Max output', output === null ? 'unknown' : `${count(output)} tokens`],
    ['Capabilities', taken === undefined ? 'unknown' : `text, ${taken}`],
  ];
}

/** Which targets answered in the last day; nothing where there were no calls. */
function WhereCallsWent({ day }: { readonly day: SeriesAnswer | undefined }): ReactElement | null {
  if (day === undefined || day.groups.length === 0) return null;
  const all = day.groups.reduce((sum, { calls }) => sum + calls, 0);
  return (
    <section className={layout.sections} aria-label="Calls by answering model">
      <h3>Calls by answering model, last 24 hours</h3>
      <BarList
        label="Calls by answering model"
        items={day.groups.map((group) => ({
          id: group.name ?? '',
          name: group.name ?? 'refused before a provider was asked',
          value: group.calls,
          text: `${count(group.calls)} (${percent(group.calls, all)}), p50 ${span(group.p50_ms)}`,
        }))}
      />
    </section>
  );
}

function Prices({ model }: { readonly model: string }): ReactElement {
  const query = usePrices(model);
  return (
    <QueryState query={query}>
      {({ prices }) =>
        prices.map(({ target, price }) => (
          <div key={target} className={styles.item}>
            <code>{target}</code>
            {price === null ? (
              <span className={layout.muted}>
                The price is unknown. Set one under prices: in the config.
              </span>
            ) : (
              <Facts facts={priceFacts(price)} />
            )}
          </div>
        ))
      }
    </QueryState>
  );
}

function priceFacts(price: Rates): readonly Fact[] {
  return [
    ['Input', money(price.input)],
    ['Cached input', price.cache_read === null ? 'as input' : money(price.cache_read)],
    ['Cache writes', price.cache_write === null ? 'as input' : money(price.cache_write)],
    ['Output', money(price.output)],
    ['Reasoning', price.reasoning === null ? 'as output' : money(price.reasoning)],
    ...price.tiers.map((tier): Fact => [
      `Above ${count(tier.above)} tokens`,
      `${money(tier.input)} in, ${money(tier.output)} out`,
    ]),
    ['Source', price.source],
  ];
}

const localNames: readonly (readonly [member: string, title: string])[] = [
  ['parameters', 'Parameters'],
  ['quantization', 'Quantization'],
  ['architecture', 'Architecture'],
  ['context', 'Context'],
  ['trained_context', 'Trained context'],
  ['reasoning', 'Reasoning'],
  ['parallel', 'Concurrent calls'],
];

function localFacts(local: NonNullable<Model['local']>): readonly Fact[] {
  const { size_bytes: size } = local;
  const facts = localNames.map(([member, title]): Fact => [title, shown(local[member])]);
  return [['File', typeof size === 'number' ? bytes(size) : '–'], ...facts];
}

function shown(value: unknown): string {
  if (typeof value === 'number') return count(value);
  return typeof value === 'string' ? value : '–';
}
