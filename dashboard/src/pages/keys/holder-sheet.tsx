/** One team or tag: what it spent, its budgets and limits, its keys. */
import { useState, type ReactElement } from 'react';
import { Link, useLocation } from 'wouter';
import { operators, useMay } from '../../api/session.ts';
import { Button } from '../../components/button.tsx';
import { DataTable } from '../../components/data-table.tsx';
import { Confirm, Dialog } from '../../components/dialog.tsx';
import { TextField } from '../../components/field.tsx';
import layout from '../../components/layout.module.css';
import { Facts, type Fact } from '../../components/panel.tsx';
import { PickField } from '../../components/pick-field.tsx';
import { Empty, ErrorPanel, Loading, QueryState } from '../../components/state.tsx';
import { useToast } from '../../components/toast.tsx';
import { count } from '../../format/number.ts';
import {
  useChange,
  useHolder,
  useKeys,
  type Holder,
  type HolderKind,
  type HolderUsage,
} from './api.ts';
import { Budgets } from './budgets.tsx';
import { policyBody } from './form.ts';
import { keyColumns, usePages } from './key-list.tsx';
import styles from './keys.module.css';
import { errorAt, PolicyForm, wrongOf } from './policy-form.tsx';
import { emptyPolicy, policyFieldsOf, type PolicyFields } from './policy.ts';
import { callsOf, HolderCost } from './spent-bar.tsx';

const holderPath = (kind: HolderKind, name: string): string =>
  `/api/${kind}s/${encodeURIComponent(name.trim())}`;

/** What is typed of a team or tag. */
interface HolderFields extends PolicyFields {
  /** Of tags: who may set it by header. */
  readonly keys: readonly string[];
  readonly teams: readonly string[];
}

const emptyHolder: HolderFields = { ...emptyPolicy, keys: [], teams: [] };

function fieldsOf(holder: Holder): HolderFields {
  const { keys = [], teams = [] } = holder;
  return { ...policyFieldsOf(holder), keys, teams };
}

function bodyOf(kind: HolderKind, fields: HolderFields) {
  const { keys, teams } = fields;
  return { ...policyBody(fields), ...(kind === 'tag' ? { keys, teams } : {}) };
}

interface FormProps {
  readonly kind: HolderKind;
  readonly fields: HolderFields;
  readonly onChange: (fields: HolderFields) => void;
  readonly error: Error | null;
}

function HolderForm({ kind, fields, onChange, error }: FormProps): ReactElement {
  const wrong = wrongOf(error);
  const names = (member: 'keys' | 'teams') => ({
    values: fields[member],
    onChange: (values: readonly string[]) => onChange({ ...fields, [member]: values }),
    offers: [],
    ...errorAt(wrong, member),
  });
  return (
    <div className={styles.form}>
      <PolicyForm
        fields={fields}
        onChange={(policy) => onChange({ ...fields, ...policy })}
        wrong={wrong}
      />
      {kind === 'tag' ? (
        <div className={styles.pair}>
          <PickField
            label="Keys that may set it"
            hint="Ids, besides keys that have the tag; * means all."
            {...names('keys')}
          />
          <PickField label="Teams that may set it" {...names('teams')} />
        </div>
      ) : null}
    </div>
  );
}

interface NewHolderProps {
  readonly kind: HolderKind;
  /** Absent: it is requested. */
  readonly name?: string;
  readonly onClose: () => void;
}

export function NewHolder({ kind, name: given, onClose }: NewHolderProps): ReactElement {
  const [name, setName] = useState(given ?? '');
  const [fields, setFields] = useState(emptyHolder);
  const change = useChange<Holder>();
  // Not before the answer is there: it may be a refusal.
  const close = (): void => (change.isPending ? undefined : onClose());
  const save = (): void =>
    change.mutate(
      { method: 'PUT', path: holderPath(kind, name), body: bodyOf(kind, fields) },
      { onSuccess: onClose },
    );
  return (
    <Dialog
      open
      onClose={close}
      title={given === undefined ? `Set up a ${kind}` : `Limits of ${given}`}
      shape="wide"
      footer={
        <Button look="primary" busy={change.isPending} onClick={save}>
          Save
        </Button>
      }
    >
      <div className={styles.form}>
        {change.error === null ? null : <ErrorPanel error={change.error} />}
        {given === undefined ? <TextField label="Name" value={name} onChange={setName} /> : null}
        <HolderForm kind={kind} fields={fields} onChange={setFields} error={change.error} />
      </div>
    </Dialog>
  );
}

interface HolderSheetProps {
  readonly kind: HolderKind;
  readonly name: string;
  /** Without limits it is known by its calls and keys only. */
  readonly hasLimits: boolean;
  readonly usage: HolderUsage | null | undefined;
  readonly onClose: () => void;
}

export function HolderSheet(props: HolderSheetProps): ReactElement {
  const { kind, name, hasLimits, usage, onClose } = props;
  const query = useHolder(kind, name, hasLimits);
  const [isSetting, setSetting] = useState(false);
  const mayChange = useMay(operators);
  const change = useChange<Holder>();
  // Not before the answer is there: it may be a refusal.
  const close = (): void => (change.isPending ? undefined : onClose());
  // Of the sheet, since the limits are gone before its end. Where "back" has closed the sheet, it does not call
  // `onClose`, which would set the address of another page.
  const removal = useChange<undefined>();
  const remove = (): Promise<unknown> =>
    removal.mutateAsync({ method: 'DELETE', path: holderPath(kind, name) }, { onSuccess: onClose });
  return (
    <Dialog
      open
      onClose={close}
      title={name}
      description={kind === 'team' ? 'Team' : 'Tag'}
      shape="side"
    >
      <div className={layout.sections}>
        <Facts facts={usageFacts(usage)} />
        <Link href={`/calls?${kind}=${encodeURIComponent(name)}`}>Calls of this {kind}</Link>
        {hasLimits ? (
          <QueryState query={query}>
            {(holder) => <Limits kind={kind} holder={holder} change={change} onRemove={remove} />}
          </QueryState>
        ) : (
          <div className={layout.row}>
            <span className={layout.muted}>It has no limits and no budget of its own.</span>
            {mayChange ? (
              <Button small onClick={() => setSetting(true)}>
                Set limits
              </Button>
            ) : null}
          </div>
        )}
        {kind === 'team' ? <Members team={name} /> : null}
      </div>
      {isSetting ? <NewHolder kind={kind} name={name} onClose={() => setSetting(false)} /> : null}
    </Dialog>
  );
}

function usageFacts(usage: HolderUsage | null | undefined): readonly Fact[] {
  return [
    ['Cost, 30 days', <HolderCost key="cost" usage={usage} />],
    ['Calls, 30 days', count(callsOf(usage))],
  ];
}

interface LimitsProps {
  readonly kind: HolderKind;
  readonly holder: Holder;
  /** Saves. Escape and the close button of the sheet wait for its answer. */
  readonly change: ReturnType<typeof useChange<Holder>>;
  readonly onRemove: () => Promise<unknown>;
}

function Limits({ kind, holder, change, onRemove }: LimitsProps): ReactElement {
  const { name } = holder;
  const [fields, setFields] = useState(() => fieldsOf(holder));
  const [isAsking, setAsking] = useState(false);
  const mayChange = useMay(operators) && holder.source !== 'config';
  const toast = useToast();
  const save = (): void =>
    change.mutate(
      { method: 'PUT', path: holderPath(kind, name), body: bodyOf(kind, fields) },
      { onSuccess: () => toast.done(`The limits of ${name} are saved.`) },
    );
  return (
    <>
      <section className={layout.sections} aria-label="Budgets">
        <h3>Budgets</h3>
        <Budgets budgets={holder.budgets} holder={{ [kind]: name }} />
      </section>
      <section className={layout.sections} aria-label="Limits">
        <h3>Limits</h3>
        {change.error === null ? null : <ErrorPanel error={change.error} />}
        {holder.source === 'config' ? (
          <p>It is declared in the config and can only be changed there.</p>
        ) : null}
        {mayChange ? (
          <>
            <HolderForm kind={kind} fields={fields} onChange={setFields} error={change.error} />
            <div className={layout.row}>
              <Button look="primary" busy={change.isPending} onClick={save}>
                Save
              </Button>
              <Button look="danger" busy={change.isPending} onClick={() => setAsking(true)}>
                Remove
              </Button>
            </div>
          </>
        ) : null}
      </section>
      <Confirm
        open={isAsking}
        onClose={() => setAsking(false)}
        title={`Remove the limits of this ${kind}?`}
        action="Remove limits"
        danger
        onConfirm={onRemove}
      >
        Its keys stay and keep their own limits.
      </Confirm>
    </>
  );
}

/** The keys of a team, the dearest first. */
function Members({ team }: { readonly team: string }): ReactElement {
  const query = useKeys({ team, sort: 'spend' });
  const { keys, onSight } = usePages(query);
  const [, navigate] = useLocation();
  return (
    <section className={layout.sections} aria-label="Keys of this team">
      <h3>Keys of this team</h3>
      {query.isError ? (
        <ErrorPanel error={query.error} onRetry={() => void query.refetch()} />
      ) : null}
      {query.isPending && !query.isError ? <Loading /> : null}
      {query.isSuccess && keys.length === 0 ? (
        <Empty title="This team has no keys">Choose the team in the form of a key.</Empty>
      ) : null}
      {keys.length > 0 ? (
        <DataTable
          label={`Keys of ${team}`}
          columns={keyColumns}
          count={keys.length}
          rowAt={(index) => keys[index]}
          rowKey={({ id }) => id}
          onOpen={({ id }) => navigate(`/keys?key=${encodeURIComponent(id)}`)}
          onSight={onSight}
          hasMore={query.hasNextPage}
          minWidth="36rem"
          maxHeight="20rem"
        />
      ) : null}
    </section>
  );
}
