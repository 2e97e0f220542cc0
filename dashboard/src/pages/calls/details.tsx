/** Everything that the ledger knows of one call. */
import { useEffect, type ReactElement } from 'react';
import { Link } from 'wouter';
import { addressOf } from '../../api/client.ts';
import {
  endpointNames,
  firstTokenMs,
  outputSpeed,
  useCall,
  type CallDetails,
} from '../../api/calls.ts';
import { limitName, type Fault } from '../../api/errors.ts';
import { useContent } from '../../api/content.ts';
import { operators, useMay } from '../../api/session.ts';
import { useKeyNames, useStatus } from '../../api/names.ts';
import { Button } from '../../components/button.tsx';
import { CodeBlock, CopyButton } from '../../components/code-block.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Facts, type Fact } from '../../components/panel.tsx';
import { QueryState } from '../../components/state.tsx';
import { exactMoney } from '../../format/money.ts';
import { speed } from '../../format/number.ts';
import { fullMoment, span } from '../../format/time.ts';
import { inputOf } from './columns.tsx';
import { Content } from './content.tsx';
import { curlOf } from './curl.ts';
import { OutcomeBadge } from './outcome-badge.tsx';
import styles from './page.module.css';
import { Section } from './section.tsx';
import { UsageTable } from './usage-table.tsx';
import { Waterfall } from './waterfall.tsx';

export interface Step {
  /** Goes to the call above in the list; undefined: there is none. */
  readonly previous: (() => void) | undefined;
  /** To the one below. */
  readonly next: (() => void) | undefined;
}

interface DetailsProps extends Step {
  readonly id: string;
  readonly onClose: () => void;
}

export function Details({ id, onClose, previous, next }: DetailsProps): ReactElement {
  const call = useCall(id);
  useStepKeys({ previous, next });
  return (
    <Dialog
      open
      shape="side"
      onClose={onClose}
      title={call.data?.model ?? 'Call'}
      description={id}
      footer={
        <>
          <StepButton text="Previous call" keyName="k" onStep={previous} />
          <StepButton text="Next call" keyName="j" onStep={next} />
        </>
      }
    >
      <QueryState query={call}>{(shown) => <Shown call={shown} />}</QueryState>
    </Dialog>
  );
}

interface StepButtonProps {
  readonly text: string;
  readonly keyName: string;
  readonly onStep: (() => void) | undefined;
}

function StepButton({ text, keyName, onStep }: StepButtonProps): ReactElement {
  return (
    <Button
      small
      disabled={onStep === undefined}
      aria-keyshortcuts={keyName}
      onClick={() => onStep?.()}
    >
      {text} <kbd aria-hidden="true">{keyName}</kbd>
    </Button>
  );
}

/** j and k, as lists of mail have them; what is typed into a field is the field's. */
function useStepKeys({ previous, next }: Step): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { target, key, ctrlKey, metaKey, altKey } = event;
      const isTyped = target instanceof HTMLElement && target.closest(typed) !== null;
      if (isTyped || ctrlKey || metaKey || altKey) return;
      if (key === 'j') next?.();
      if (key === 'k') previous?.();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [previous, next]);
}

const typed = 'input, textarea, select, [contenteditable]';

function Shown({ call }: { call: CallDetails }): ReactElement {
  const notes = call.notes?.split('; ') ?? [];
  return (
    <>
      <Why call={call} />
      <CallFacts call={call} />
      <Section title="Attempts">
        <Waterfall call={call} />
      </Section>
      <Section title="Usage and cost">
        {isCounted(call) ? <UsageTable call={call} /> : null}
        <p className={styles.muted}>{aboutUsage(call)}</p>
      </Section>
      {notes.length === 0 ? null : (
        <Section title="Translation notes">
          <ul className={styles.notes}>
            {notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </Section>
      )}
      {call.metadata === null ? null : (
        <Section title="Client metadata">
          <CodeBlock label="metadata" text={JSON.stringify(call.metadata, null, 2)} />
        </Section>
      )}
      <Said call={call} />
    </>
  );
}

/** Why it failed, in the words that its client got. */
function Why({ call }: { call: CallDetails }): ReactElement | null {
  const keys = useKeyNames();
  const { fault, message, error, reason, limit } = call;
  if (fault === null) return null;
  const refusedBy = limit === null ? undefined : limitName(limit);
  const nameOf = (id: string): string => keys.data?.find((key) => key.id === id)?.name ?? id;
  const whose =
    refusedBy?.holder === 'key' ? nameOf(refusedBy.name) : (refusedBy?.name ?? undefined);
  return (
    <div className={styles.why} role="note" aria-label="Why it failed">
      <strong>{whyTitles[fault]}</strong>
      {refusedBy === undefined ? null : (
        <p>{`Refused by the ${refusedBy.kind} of ${refusedBy.holder} ${whose ?? ''}.`}</p>
      )}
      <p>{message}</p>
      <p className={styles.muted}>
        {[error, reason]
          .filter((code) => code !== null)
          .map((code) => (
            <code key={code}>{code} </code>
          ))}
      </p>
    </div>
  );
}

const whyTitles: { readonly [F in Fault]: string } = {
  limit: 'A limit of the gateway refused it',
  client: 'The request was at fault',
  provider: 'The provider failed',
  gateway: 'The gateway could not serve it',
};

/** What was asked and answered, and how to ask it again. */
function Said({ call }: { call: CallDetails }): ReactElement {
  const url = useStatus().data?.url;
  const content = useContent(call.id);
  const mayRead = useMay(operators);
  return (
    <>
      {mayRead ? (
        <>
          <QueryState query={content}>
            {(shown) => <Content call={call} content={shown} />}
          </QueryState>
          <p>
            <Link href={addressOf('/playground', { call: call.id })}>Again in the playground</Link>
          </p>
        </>
      ) : null}
      {url === undefined ? null : (
        <Section title="Reproduce">
          <CodeBlock label="curl command" text={curlOf(call, url, content.data?.request)} />
        </Section>
      )}
    </>
  );
}

function CallFacts({ call }: { call: CallDetails }): ReactElement {
  const keys = useKeyNames();
  const nameOf = (id: string): string | undefined => keys.data?.find((key) => key.id === id)?.name;
  const keyName = nameOf(call.key);
  const facts: readonly Fact[] = [
    [
      'Outcome',
      <span className={styles.outcome} key="outcome">
        <OutcomeBadge call={call} />
        {call.outcome === 'failed' ? null : call.error}
      </span>,
    ],
    [
      'Id',
      <span key="id" className={styles.copied}>
        <code>{call.id}</code> <CopyButton text={call.id} label="Copy the id" />
      </span>,
    ],
    [
      'Link',
      <span key="link" className={styles.copied}>
        <code>{pathOf(call.id)}</code>{' '}
        <CopyButton text={new URL(pathOf(call.id), location.href).href} label="Copy the link" />
      </span>,
    ],
    ['Began', fullMoment(call.started_at)],
    ['Took', durationText(call)],
    [
      'Key',
      <OfThis
        key="key"
        name="key"
        value={call.key}
        text={keyName === undefined ? call.key : `${keyName} (${call.key})`}
      />,
    ],
    [
      'Endpoint',
      `${endpointNames[call.endpoint] ?? call.endpoint}${call.stream ? ', streamed' : ''}`,
    ],
    ['Answered by', answeredBy(call)],
    ...(call.team === null
      ? []
      : [['Team', <OfThis key="team" name="team" value={call.team} />] as const]),
    ...call.tags.map((tag) => ['Tag', <OfThis key={tag} name="tag" value={tag} />] as const),
    ...(call.user === null
      ? []
      : [['User', <OfThis key="user" name="user" value={call.user} />] as const]),
    ...call.budgets.map((budget): Fact => ['Budget', budgetText(budget, nameOf)]),
    ...optional(
      'Saved by caches',
      call.cache_saved_usd === null ? null : exactMoney(call.cache_saved_usd),
    ),
    ...optional('Reserved', call.reserved_usd === null ? null : exactMoney(call.reserved_usd)),
    ...optional('Overrun', call.overrun ? 'the call cost more than was reserved' : null),
  ];
  return <Facts facts={facts} />;
}

/** `monthly budget of key support, 2026-11`. */
function budgetText(
  { counter, window }: CallDetails['budgets'][number],
  keyName: (id: string) => string | undefined,
): string {
  const budget = limitName(counter);
  if (budget === undefined) return `${counter}, ${window}`;
  const { holder, name, kind } = budget;
  const named = holder === 'key' ? (keyName(name) ?? name) : name;
  return `${kind} of ${holder} ${named}${window === 'ever' ? '' : `, ${window}`}`;
}

/** Of a call's page. */
export function pathOf(id: string): string {
  return `/calls/${encodeURIComponent(id)}`;
}

interface OfThisProps {
  /** Of the filter. */
  readonly name: 'key' | 'team' | 'tag' | 'user';
  readonly value: string;
  readonly text?: string;
}

/** A name, and the way to its calls. */
function OfThis({ name, value, text = value }: OfThisProps): ReactElement {
  return (
    <>
      {`${text} `}
      <Link href={addressOf('/calls', { [name]: value })}>{`Calls of this ${name}`}</Link>
    </>
  );
}

function durationText(call: CallDetails): string {
  const first = firstTokenMs(call);
  const tokens = outputSpeed(call);
  return [
    span(call.total_ms),
    ...(first === null ? [] : [`first token after ${span(first)}`]),
    ...(tokens === null ? [] : [`${speed(tokens)} tokens/s from there on`]),
  ].join(', ');
}

function optional(name: string, value: string | null): readonly Fact[] {
  return value === null ? [] : [[name, value]];
}

function answeredBy({ provider, upstream_model: model, mode }: CallDetails): string {
  if (provider === null) return 'none: no request was sent to an upstream';
  return `${provider}/${model ?? ''}${mode === null ? '' : `, ${mode}`}`;
}

const sources: { readonly [source: string]: string } = {
  reported: 'Counted by the provider.',
  counted: 'Counted by the gateway.',
  estimated: 'Estimated by the gateway: the provider reported no usage.',
};

/** Whether any token was counted or reported. */
function isCounted({ charged, reported }: CallDetails): boolean {
  const counts = reported === null ? [charged] : [charged, reported];
  return counts.some((each) => inputOf(each) !== null || each.output_tokens !== null);
}

function aboutUsage(call: CallDetails): string {
  const { provider, usage_source: source, suspect, price } = call;
  if (provider === null)
    return 'No request was sent to an upstream, so there is no usage and no cost.';
  if (!isCounted(call))
    return 'The provider was asked and nothing was counted, so there is no cost.';
  const isReplaced = suspect && source === 'estimated';
  const counted = isReplaced
    ? 'Estimated by the gateway: the provider reported impossible counts.'
    : (sources[source] ?? source);
  const doubt = suspect && !isReplaced ? ' The provider reported impossible counts.' : '';
  const priced =
    price === null ? ' No price is known for this model.' : ` Price from ${price.source}.`;
  return `${counted}${doubt}${priced}`;
}
