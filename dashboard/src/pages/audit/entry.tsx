/** One entry of the audit log: all that it says, and what it changed. */
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { get } from '../../api/client.ts';
import { CopyButton } from '../../components/code-block.tsx';
import { Dialog } from '../../components/dialog.tsx';
import layout from '../../components/layout.module.css';
import { Facts, type Fact } from '../../components/panel.tsx';
import { Empty, QueryState } from '../../components/state.tsx';
import { ago, fullMoment } from '../../format/time.ts';
import type { AuditEntry } from './api.ts';
import styles from './audit.module.css';
import { changesOf } from './changes.ts';

const actorNames: ReadonlyMap<string, string> = new Map([
  ['admin', 'admin token'],
  ['command', 'command line'],
  ['config', 'configuration'],
  ['start', 'gateway start'],
]);

/** `admin token`, or the id of a person who signed in. */
export function actorName(actor: string): string {
  return actorNames.get(actor) ?? actor.replace(/^person:/, '');
}

/** A key by its name, where it has one. */
export function subjectName(subject: string, names: ReadonlyMap<string, string>): string {
  const name = names.get(subject);
  return name === undefined ? subject : `${name} (${subject})`;
}

interface EntrySheetProps {
  readonly seq: number;
  /** Entries at hand. */
  readonly known: readonly AuditEntry[] | undefined;
  readonly names: ReadonlyMap<string, string>;
  readonly onClose: () => void;
}

export function EntrySheet({ seq, known, names, onClose }: EntrySheetProps): ReactElement {
  const isNumber = Number.isSafeInteger(seq) && seq > 0;
  const found = known?.find((entry) => entry.seq === seq);
  const query = useQuery({
    queryKey: ['audit-entry', seq],
    queryFn: async ({ signal }) => {
      const { entries } = await get<{ readonly entries: readonly AuditEntry[] }>('/api/audit', {
        query: { limit: 1, before: seq + 1 },
        signal,
      });
      return entries.find((entry) => entry.seq === seq) ?? null;
    },
    enabled: found === undefined && isNumber,
    // Entries never change.
    staleTime: Infinity,
  });
  return (
    <Dialog open onClose={onClose} shape="side" title={isNumber ? `Entry ${seq}` : 'Entry'}>
      {found === undefined && isNumber ? (
        <QueryState query={query}>
          {(entry) => <EntryOrNone entry={entry} names={names} />}
        </QueryState>
      ) : (
        <EntryOrNone entry={found ?? null} names={names} />
      )}
    </Dialog>
  );
}

interface EntryProps {
  readonly entry: AuditEntry;
  readonly names: ReadonlyMap<string, string>;
}

interface EntryOrNoneProps extends Omit<EntryProps, 'entry'> {
  readonly entry: AuditEntry | null;
}

function EntryOrNone({ entry, names }: EntryOrNoneProps): ReactElement {
  if (entry === null)
    return <Empty title="No such entry">The log has no entry of this number.</Empty>;
  return <Entry entry={entry} names={names} />;
}

function Entry({ entry, names }: EntryProps): ReactElement {
  const { at, actor, ip, action, subject, hash } = entry;
  const facts: readonly Fact[] = [
    ['When', `${fullMoment(at)} (${ago(at)})`],
    ['Who', actorName(actor)],
    ['From', ip ?? '–'],
    ['Action', <code key="action">{action}</code>],
    ['Subject', <SubjectLink key="subject" subject={subject} text={subjectName(subject, names)} />],
    [
      'Hash',
      <span key="hash" className={layout.row}>
        <code>{hash}</code>
        <CopyButton text={hash} label="Copy the hash" />
      </span>,
    ],
  ];
  return (
    <div className={layout.sections}>
      <Facts facts={facts} />
      <Changes entry={entry} />
    </div>
  );
}

interface SubjectLinkProps {
  readonly subject: string;
  readonly text: string;
}

function SubjectLink({ subject, text }: SubjectLinkProps): ReactElement {
  const href = subjectHref(subject);
  return href === undefined ? <>{text}</> : <Link href={href}>{text}</Link>;
}

/** Where what was changed is shown. */
function subjectHref(subject: string): string | undefined {
  const [kind = '', ...rest] = subject.split(':');
  const name = encodeURIComponent(rest.join(':'));
  if (['key', 'team', 'tag'].includes(kind) && name !== '') return `/keys?${kind}=${name}`;
  return kind === 'config' ? '/setup' : undefined;
}

function Changes({ entry: { before, after } }: { readonly entry: AuditEntry }): ReactElement {
  const changes = changesOf(before, after);
  return (
    <section>
      <h3>What changed</h3>
      {changes.length === 0 ? (
        <p className={styles.note}>This entry has no values.</p>
      ) : (
        <table className={styles.changes}>
          <thead>
            <tr>
              <th scope="col">Member</th>
              <th scope="col">Before</th>
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            {changes.map((change) => (
              <tr key={change.member}>
                <th scope="row">{change.member}</th>
                <td>{change.before === undefined ? '–' : <del>{change.before}</del>}</td>
                <td>{change.after === undefined ? '–' : <ins>{change.after}</ins>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
