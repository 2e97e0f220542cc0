/** What a call used and cost, by class of tokens: as the provider reported it, and as it was charged. */
import type { ReactElement } from 'react';
import type { CallDetails } from '../../api/calls.ts';
import { exactMoney, money, unknown } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import styles from './page.module.css';

const classes = [
  { name: 'Uncached input', tokens: 'fresh_input_tokens', price: 'input', cost: 'input' },
  { name: 'Cache read', tokens: 'cache_read_tokens', price: 'cache_read', cost: 'cache_read' },
  { name: 'Cache write', tokens: 'cache_write_tokens', price: 'cache_write', cost: 'cache_write' },
  { name: 'Output', tokens: 'output_tokens', price: 'output', cost: 'output' },
  {
    name: 'Reasoning (part of output)',
    tokens: 'reasoning_tokens',
    price: 'reasoning',
    cost: 'reasoning',
  },
] as const;

/** Shown where there are some: what they cost is in the rows above, and for searches and pictures in the sum. */
const pieces = [
  { name: 'Audio (part of input)', tokens: 'audio_input_tokens' },
  { name: 'Images (part of input)', tokens: 'image_input_tokens' },
  { name: 'Video (part of input)', tokens: 'video_input_tokens' },
  { name: 'Audio (part of output)', tokens: 'audio_output_tokens' },
  { name: 'Images (part of output)', tokens: 'image_output_tokens' },
  { name: 'Web searches', tokens: 'web_searches' },
  { name: 'Images with a price each', tokens: 'images' },
] as const;

export function UsageTable({ call }: { call: CallDetails }): ReactElement {
  const { reported, charged, price, cost } = call;
  return (
    <div className={styles.scroll} tabIndex={0} role="region" aria-label="Usage and cost">
      <table className={styles.usage}>
        <thead>
          <tr>
            <th scope="col">Tokens</th>
            <th scope="col">Reported</th>
            <th scope="col">Charged</th>
            <th scope="col">$ per million</th>
            <th scope="col">Cost</th>
          </tr>
        </thead>
        <tbody>
          {classes.map((each) => (
            <tr key={each.name}>
              <th scope="row">{each.name}</th>
              <td>{count(reported?.[each.tokens])}</td>
              <td>{count(charged[each.tokens])}</td>
              <td>{price?.[each.price] ?? unknown}</td>
              <CostCell tokens={charged[each.tokens]} cost={cost?.[each.cost]} />
            </tr>
          ))}
          {pieces
            .filter(({ tokens }) => (charged[tokens] ?? 0) > 0)
            .map(({ name, tokens }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{count(reported?.[tokens])}</td>
                <td>{count(charged[tokens])}</td>
                <td>{unknown}</td>
                <td>{unknown}</td>
              </tr>
            ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row" colSpan={4}>
              Total
            </th>
            <td title={exactMoney(call.cost_usd)}>{money(call.cost_usd)}</td>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

interface CostCellProps {
  readonly tokens: number | null;
  readonly cost: number | undefined;
}

/** What was not counted cost nothing, which is not the same as tokens for nothing. */
function CostCell({ tokens, cost }: CostCellProps): ReactElement {
  if (tokens === null && (cost ?? 0) === 0) return <td>{unknown}</td>;
  return <td title={exactMoney(cost)}>{money(cost)}</td>;
}
