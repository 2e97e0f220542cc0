/** What the gateway would do with the next request, and what each upstream would get. */
import { useEffect, useState, type ReactElement } from 'react';
import {
  refusalText,
  useExplanation,
  type ExplainedLimit,
  type ExplainedTarget,
  type Explanation,
} from '../../api/explain.ts';
import { CodeBlock } from '../../components/code-block.tsx';
import { Facts, type Fact } from '../../components/panel.tsx';
import { QueryState } from '../../components/state.tsx';
import { exactMoney, money, unknown } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import { HealthBadge } from '../models/health.tsx';
import { NextHint } from './code-view.tsx';
import { bodyChanges } from './formats/changes.ts';
import { SettingError } from './formats/request.ts';
import { shortened } from './formats/shortened.ts';
import { endpointPaths } from './formats/turns.ts';
import type { NextRequest } from './next-request.ts';
import styles from './playground.module.css';

interface UpstreamViewProps {
  readonly next: NextRequest | SettingError;
  /** Id of the key to call as; '' = none. */
  readonly asKey: string;
}

export function UpstreamView({ next, asKey }: UpstreamViewProps): ReactElement {
  return (
    <div className={styles.raw}>
      <NextHint next={next} />
      {next instanceof SettingError ? null : <Explained next={next} asKey={asKey} />}
    </div>
  );
}

/** While something is typed the gateway is not asked. */
const pauseMs = 400;

function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

interface ExplainedProps {
  readonly next: NextRequest;
  readonly asKey: string;
}

function Explained({ next, asKey }: ExplainedProps): ReactElement {
  const body = useSettled(JSON.stringify(next.body));
  const endpoint = endpointPaths[next.endpoint];
  const explanation = useExplanation({ endpoint, body, key: asKey });
  return (
    <QueryState query={explanation}>
      {(shown) => <ExplanationView explanation={shown} sent={next.body} />}
    </QueryState>
  );
}

interface ExplanationViewProps {
  readonly explanation: Explanation;
  /** Body of the client; what each upstream gets is compared with it. */
  readonly sent: unknown;
}

export function ExplanationView({ explanation, sent }: ExplanationViewProps): ReactElement {
  const { refused, targets } = explanation;
  return (
    <>
      {refused === null ? null : (
        <div className={styles.failure} role="note" aria-label="Refusal">
          <p className={styles.text}>The gateway would refuse it. {refusalText(refused)}</p>
        </div>
      )}
      <Facts facts={factsOf(explanation)} />
      {targets.map((target, index) => (
        <TargetView
          key={`${index}-${target.target}`}
          target={target}
          isFirst={target.place === 1}
          sent={sent}
        />
      ))}
    </>
  );
}

function factsOf({ route, prompt, cost, limits }: Explanation): readonly Fact[] {
  const { expected_usd: expected, highest_usd: highest, expected_output_tokens: output } = cost;
  return [
    ['Route', `${route.name}, order: ${route.order}`],
    ['Prompt', prompt === null ? unknown : `${count(prompt.tokens)} tokens (${prompt.counted_by})`],
    [
      'Cost',
      <span key="cost" title={`at most ${exactMoney(dollars(highest))}`}>
        {expected === null
          ? 'unknown'
          : `${money(dollars(expected))} expected, for ${count(output)} output tokens`}
        {highest === null ? '' : `; at most ${money(dollars(highest))}`}
      </span>,
    ],
    ...limits.map((limit): Fact => [`${limit.kind} of ${limit.holder}`, limitText(limit)]),
  ];
}

function dollars(text: string | null): number | null {
  return text === null ? null : Number(text);
}

function limitText({ kind, limit, takes, left, per }: ExplainedLimit): string {
  const amount = (value: number | string): string =>
    kind === 'budget' ? money(Number(value)) : count(Number(value));
  const rest = left === null ? '' : `, ${money(Number(left))} left`;
  return `takes ${amount(takes)} of ${amount(limit)}${per === null ? '' : ` per ${per}`}${rest}`;
}

interface TargetViewProps {
  readonly target: ExplainedTarget;
  readonly isFirst: boolean;
  readonly sent: unknown;
}

function TargetView({ target, isFirst, sent }: TargetViewProps): ReactElement {
  const { place, why, health, mode, notes, refused, request } = target;
  return (
    <details className={styles.fold} open={isFirst}>
      <summary>
        {place === null ? 'Not tried' : `${place}.`} {target.target} <HealthBadge health={health} />
      </summary>
      <div className={styles.raw}>
        <p className={styles.hint}>
          {why}
          {mode === null ? '' : `; ${mode === 'relay' ? 'relayed' : 'translated'}`}
        </p>
        {refused === null ? null : <p className={styles.text}>{refusalText(refused)}</p>}
        {notes.length === 0 ? null : (
          <ul className={styles.notes} aria-label="Dropped or changed">
            {notes.map(({ path, what, why: reason }) => (
              <li key={`${what} ${path}`}>
                <code>{path}</code> is {what === 'lost' ? 'dropped' : 'changed'}: {reason}
              </li>
            ))}
          </ul>
        )}
        {request === null ? null : (
          <>
            <Changes sent={sent} got={request.body ?? {}} />
            <CodeBlock
              label={`Address and headers for ${target.target}`}
              text={[
                `${request.method} ${request.url}`,
                ...Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`),
              ].join('\n')}
            />
            <CodeBlock
              label={`Body for ${target.target}`}
              text={JSON.stringify(shortened(request.body ?? {}), null, 2)}
            />
          </>
        )}
      </div>
    </details>
  );
}

/** Longer values are cut: the bodies have them whole. */
const shownChanges = 200;

function Changes({ sent, got }: { sent: unknown; got: unknown }): ReactElement {
  const changes = bodyChanges(sent, got);
  if (changes.length === 0) return <p className={styles.hint}>It gets the body as it was sent.</p>;
  return (
    <details className={styles.fold}>
      <summary>
        {count(changes.length)} {changes.length === 1 ? 'member differs' : 'members differ'} from
        what the client sent
      </summary>
      <ul className={styles.changes} aria-label="Differences">
        {changes.slice(0, shownChanges).map(({ path, sent: old, got: now }) => (
          <li key={path}>
            <code>{path}</code>
            {old === undefined ? null : <del>{cut(old)}</del>}
            {now === undefined ? null : <ins>{cut(now)}</ins>}
          </li>
        ))}
      </ul>
      {changes.length <= shownChanges ? null : (
        <p className={styles.hint}>The first {count(shownChanges)} are shown.</p>
      )}
    </details>
  );
}

function cut(json: string): string {
  return json.length <= 300 ? json : `${json.slice(0, 300)}…`;
}
