/** One key: what it may do, what it has spent, and what can be done with it. */
import { useState, type ReactElement, type ReactNode } from 'react';
import { Link } from 'wouter';
import { keyMakers, operators, useMay } from '../../api/session.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { Confirm, Dialog } from '../../components/dialog.tsx';
import { SelectField } from '../../components/field.tsx';
import layout from '../../components/layout.module.css';
import { Facts, type Fact } from '../../components/panel.tsx';
import { QueryState } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import { minute } from '../../format/time.ts';
import { keyPath, useChange, useKey, type Key, type NewKey } from './api.ts';
import { Budgets } from './budgets.tsx';
import { ForgetContent } from './content-log.tsx';
import { EditKey } from './key-dialogs.tsx';
import { lastUsed } from './last-used.ts';
import { Month } from './month.tsx';

type Action = 'edit' | 'rotate' | 'revoke' | undefined;

type Rotation = ReturnType<typeof useChange<NewKey>>;

interface SheetProps {
  readonly id: string;
  /** Gives a key a new secret; the owner of the sheet shows it. */
  readonly rotate: Rotation;
  /** The id of the key when its rotation is confirmed; undefined when the question is over. */
  readonly onRotating: (id: string | undefined) => void;
  readonly onClose: () => void;
}

export function KeySheet({ id, onClose, ...rotation }: SheetProps): ReactElement {
  const query = useKey(id);
  return (
    <Dialog
      open
      onClose={onClose}
      title={query.data?.name ?? 'Key'}
      description={<code>{id}</code>}
      shape="side"
    >
      <QueryState query={query}>
        {(shown) => <KeyDetail subject={shown} {...rotation} />}
      </QueryState>
    </Dialog>
  );
}

const tones = { active: 'good', expired: 'warn', revoked: 'bad' } as const;

export function StateBadge({ state }: { readonly state: Key['state'] }): ReactElement {
  return <Badge tone={tones[state]} text={state} />;
}

type RotationProps = Pick<SheetProps, 'rotate' | 'onRotating'>;

function KeyDetail({
  subject,
  ...rotation
}: RotationProps & { readonly subject: Key }): ReactElement {
  const [action, setAction] = useState<Action>();
  const isOurs = subject.source === 'store' && subject.state !== 'revoked';
  const mayRenew = useMay(keyMakers);
  const mayChange = useMay(operators);
  return (
    <div className={layout.sections}>
      <div className={layout.row}>
        <StateBadge state={subject.state} />
        {isOurs && mayChange ? (
          <Button small onClick={() => setAction('edit')}>
            Change
          </Button>
        ) : null}
        {isOurs && mayRenew ? (
          <>
            <Button small icon="refresh" onClick={() => setAction('rotate')}>
              Rotate
            </Button>
            <Button small look="danger" onClick={() => setAction('revoke')}>
              Revoke
            </Button>
          </>
        ) : null}
        {isOurs ? null : <span className={layout.muted}>{whyFixed(subject)}</span>}
      </div>
      <section className={layout.sections} aria-label="Budgets">
        <h3>Budgets</h3>
        <Budgets budgets={subject.budgets} holder={{ key: subject.id }} />
      </section>
      <Month id={subject.id} />
      <Facts facts={factsOf(subject)} />
      <Link href={`/calls?key=${encodeURIComponent(subject.id)}`}>Calls of this key</Link>
      {mayChange ? <ForgetContent subject={subject} /> : null}
      {action === 'edit' ? (
        <EditKey subject={subject} onClose={() => setAction(undefined)} />
      ) : null}
      <RotateKey
        {...rotation}
        subject={subject}
        open={action === 'rotate'}
        onClose={() => setAction(undefined)}
      />
      <RevokeKey
        subject={subject}
        open={action === 'revoke'}
        onClose={() => setAction(undefined)}
      />
    </div>
  );
}

function whyFixed({ source }: Key): string {
  if (source === 'store') return 'It is no longer accepted.';
  return source === 'config'
    ? 'It is declared in the config and can only be changed there.'
    : 'It is set in the environment (MODEL_GATEWAY_KEY).';
}

interface ActionProps {
  readonly subject: Key;
  readonly open: boolean;
  readonly onClose: () => void;
}

const overlaps = [
  { value: '0', label: 'Stops working now' },
  { value: '1h', label: 'Works for another hour' },
  { value: '24h', label: 'Works for another 24 hours' },
  { value: '7d', label: 'Works for another 7 days' },
] as const;

function RotateKey({
  subject,
  rotate,
  onRotating,
  open,
  onClose,
}: ActionProps & RotationProps): ReactElement {
  const [overlap, setOverlap] = useState('24h');
  const confirm = (): Promise<unknown> => {
    onRotating(subject.id);
    const path = keyPath(subject.id, '/rotate');
    return rotate.mutateAsync({ method: 'POST', path, body: { overlap } });
  };
  return (
    <Confirm
      open={open}
      onClose={() => {
        onRotating(undefined);
        onClose();
      }}
      title="Give this key a new secret?"
      action="Rotate key"
      onConfirm={confirm}
    >
      <SelectField
        label="The old secret"
        value={overlap}
        choices={overlaps}
        onChange={setOverlap}
      />
    </Confirm>
  );
}

function RevokeKey({ subject, open, onClose }: ActionProps): ReactElement {
  const revoke = useChange<Key>();
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title="Revoke this key?"
      action="Revoke key"
      danger
      onConfirm={() => revoke.mutateAsync({ method: 'POST', path: keyPath(subject.id, '/revoke') })}
    >
      The key stops working immediately and permanently, and its running calls are cut.
    </Confirm>
  );
}

function factsOf(subject: Key): readonly Fact[] {
  const limit = (value: number | null): string => (value === null ? 'no limit' : count(value));
  const list = (values: readonly string[], none: string): string =>
    values.length === 0 ? none : values.join(', ');
  return [
    ['Models', list(subject.models, 'none')],
    ['Endpoints', list(subject.endpoints, 'all')],
    ['Requests per minute', limit(subject.rpm)],
    ['Tokens per minute', limit(subject.tpm)],
    ['Concurrent calls', limit(subject.concurrent)],
    ...subject.limits
      .filter(({ model }) => model !== null)
      .map(({ kind, amount, model }): Fact => [`${kind} of ${model ?? ''}`, count(amount)]),
    ['Team', teamLink(subject)],
    ['Owner', subject.owner ?? '–'],
    ['Tags', list(subject.tags, '–')],
    ['From', list(subject.cidrs, 'anywhere')],
    ['Strict', subject.strict ? 'yes' : 'no'],
    ['Cache marks', subject.cache === null ? 'as the route sets' : subject.cache],
    ['Shrink', subject.shrink ? 'yes' : 'no'],
    ['Content of calls', subject.log_content ? 'logged' : 'not logged'],
    ['Created', minute(subject.created_at)],
    ['Expires', subject.expires_at === null ? 'never' : minute(subject.expires_at)],
    ['Last used', lastUsed(subject)],
    ['Old secrets', subject.previous.length === 0 ? 'none' : String(subject.previous.length)],
  ];
}

function teamLink({ team }: Key): ReactNode {
  return team === null ? '–' : <Link href={`/keys?team=${encodeURIComponent(team)}`}>{team}</Link>;
}
