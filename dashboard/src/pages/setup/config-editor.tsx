/** The config file in an editor: check, look at what would change, write and apply. Secrets stay in the gateway. */
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState, type ReactElement } from 'react';
import { ApiError } from '../../api/api-error.ts';
import { get, send } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { TextArea } from '../../components/field.tsx';
import { useUnsaved } from '../../components/leaving.tsx';
import { ErrorPanel, QueryState } from '../../components/state.tsx';
import { useToast } from '../../components/toast.tsx';
import styles from './config-editor.module.css';
import setup from './setup.module.css';

interface ConfigFile {
  /** Null: the gateway runs without a file. */
  readonly path: string | null;
  /** Null: it cannot be shown. */
  readonly text: string | null;
  readonly etag: string | null;
  readonly editable: boolean;
  readonly reason: string | null;
  readonly shared: boolean;
}

interface Problem {
  readonly line: number | null;
  readonly column: number | null;
  readonly text: string;
}

interface Change {
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
  readonly overridden_by: string | null;
}

interface Preview {
  readonly changes: readonly Change[];
  readonly warnings: readonly string[];
  readonly needs_restart: readonly string[];
}

interface Validated extends Preview {
  readonly valid: boolean;
  readonly problems: readonly Problem[];
}

interface Written extends Preview {
  readonly backup: string;
}

const fileQuery = queryOptions({
  queryKey: ['config-file'],
  queryFn: ({ signal }) => get<ConfigFile>('/api/config/file', { signal }),
});

export function ConfigEditor({ onClose }: { readonly onClose: () => void }): ReactElement {
  // Read again only when it is requested: typed text belongs to what was read.
  const file = useQuery({
    ...fileQuery,
    gcTime: 0,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
  });
  return (
    <div className={styles.editor} role="group" aria-label="Config file">
      <QueryState query={file}>
        {(data) =>
          data.editable ? (
            <Editing file={data} onClose={onClose} />
          ) : (
            <ReadOnly file={data} onClose={onClose} />
          )
        }
      </QueryState>
    </div>
  );
}

function ReadOnly({
  file,
  onClose,
}: {
  readonly file: ConfigFile;
  readonly onClose: () => void;
}): ReactElement {
  return (
    <>
      <p className={setup.warning}>
        {file.path === null ? 'The configuration' : file.path} cannot be changed here: {file.reason}
        . Change it where it comes from, for example in a Git repository, a ConfigMap or the flags
        of the service. The gateway reads the file again when it changes; run model-gateway check
        before.
      </p>
      {file.text === null ? null : (
        <TextArea
          label="Text of the file"
          mono
          readOnly
          rows={16}
          wrap="off"
          value={file.text}
          onChange={() => undefined}
        />
      )}
      <div className={styles.actions}>
        <Button onClick={onClose}>Close</Button>
      </div>
    </>
  );
}

interface EditingProps {
  /** As it was when the editor opened: what a person types belongs to it. */
  readonly file: ConfigFile;
  readonly onClose: () => void;
}

/** The text that is typed, and what the gateway says to it. */
function useEditing(file: ConfigFile) {
  const [opened, setOpened] = useState(file);
  const [typed, setTyped] = useState(file.text ?? '');
  const client = useQueryClient();
  const toast = useToast();
  /** Reads the file again. @param replaced text that may be overwritten; absent: all. */
  const openAgain = async (replaced?: string): Promise<void> => {
    const now = await client.fetchQuery({ ...fileQuery, staleTime: 0 });
    setOpened(now);
    setTyped((latest) => {
      if (replaced !== undefined && latest !== replaced) return latest;
      return now.text ?? '';
    });
  };
  const check = useMutation({
    mutationFn: (text: string) =>
      send<Validated>('POST', '/api/config/file/validate', { body: { text } }),
  });
  const write = useMutation({
    mutationFn: (text: string) =>
      send<Written>('PUT', '/api/config/file', { body: { text }, ifMatch: opened.etag ?? '' }),
    onSuccess: async ({ backup, needs_restart: waiting }, written) => {
      const restart = waiting.length === 0 ? '' : ` Restart the gateway for ${waiting.join(', ')}.`;
      toast.done(`The file was written and applied.${restart} The previous one is ${backup}.`);
      // Secrets that were typed are placeholders from now on. What was typed meanwhile stays.
      await openAgain(written);
      await client.invalidateQueries();
    },
  });
  const again = useMutation({ mutationFn: () => openAgain(), onSuccess: () => write.reset() });
  return { opened, typed, setTyped, check, write, again };
}

function Editing({ file, onClose }: EditingProps): ReactElement {
  const { opened, typed, setTyped, check, write, again } = useEditing(file);
  const area = useRef<HTMLTextAreaElement>(null);
  const isChanged = typed !== opened.text;
  useUnsaved(
    isChanged,
    'What you typed was not written to the file. It is lost when you leave this page.',
  );
  // The button that opened the editor is gone.
  useEffect(() => area.current?.focus(), []);
  const checked = check.variables === typed ? check.data : undefined;
  const failed = [check.error, write.error, again.error].filter((error) => error !== null);
  const isOutdated = write.error instanceof ApiError && write.error.status === 412;
  return (
    <>
      <TextArea
        ref={area}
        label={`Text of ${opened.path ?? 'the file'}`}
        hint="Each <kept: PATH> stands for a secret that the file has at this path. Leave it, or type a new value in its place: best a reference, ${NAME} or ${file:/path}."
        mono
        rows={20}
        wrap="off"
        value={typed}
        onChange={setTyped}
      />
      {opened.shared ? (
        <p className={setup.note}>
          Other gateways on this store have config files of their own: this changes one of them.
        </p>
      ) : null}
      {failed.map((error) => (
        <ErrorPanel key={error.message} error={error} />
      ))}
      {checked === undefined ? null : (
        <Findings checked={checked} goTo={(problem) => goTo(area.current, problem)} />
      )}
      <div className={styles.actions}>
        <Button busy={check.isPending} disabled={!isChanged} onClick={() => check.mutate(typed)}>
          Check
        </Button>
        <Button
          look="primary"
          busy={write.isPending}
          disabled={!isChanged || checked?.valid !== true}
          onClick={() => write.mutate(typed)}
        >
          Write and apply
        </Button>
        {isOutdated ? (
          <Button icon="refresh" busy={again.isPending} onClick={() => again.mutate()}>
            Load the file again, without my changes
          </Button>
        ) : null}
        <Button onClick={onClose}>{isChanged ? 'Discard changes' : 'Close'}</Button>
      </div>
    </>
  );
}

/** Puts the cursor where the problem is. */
function goTo(area: HTMLTextAreaElement | null, { line, column }: Problem): void {
  if (line === null || area === null) return;
  const before = area.value.split('\n').slice(0, line - 1);
  const at = before.reduce((sum, each) => sum + each.length + 1, 0) + (column ?? 1) - 1;
  area.focus();
  area.setSelectionRange(at, at);
  // Browsers do not scroll to a selection by themselves.
  const lineHeight = Number.parseFloat(getComputedStyle(area).lineHeight) || 16;
  area.scrollTop = (line - 4) * lineHeight;
}

interface FindingsProps {
  readonly checked: Validated;
  readonly goTo: (problem: Problem) => void;
}

function Findings({ checked, goTo }: FindingsProps): ReactElement {
  const { problems, changes, warnings, needs_restart: waiting } = checked;
  if (!checked.valid) {
    return (
      <div role="alert">
        <p>The gateway cannot run with this text:</p>
        <ul className={styles.problems}>
          {problems.map((problem) => (
            <li key={problem.text}>
              {problem.line === null ? (
                problem.text
              ) : (
                <button type="button" className={styles.problem} onClick={() => goTo(problem)}>
                  {problem.text}
                </button>
              )}
            </li>
          ))}
        </ul>
      </div>
    );
  }
  return (
    <div role="status">
      {warnings.map((warning) => (
        <p key={warning} className={setup.warning}>
          {warning}
        </p>
      ))}
      {waiting.length === 0 ? null : (
        <p className={setup.warning}>Read at the next start only: {waiting.join(', ')}.</p>
      )}
      {changes.length === 0 ? <p>Valid. No setting changes.</p> : <Changes changes={changes} />}
    </div>
  );
}

const maxShown = 200;

function Changes({ changes }: { readonly changes: readonly Change[] }): ReactElement {
  return (
    <div className={setup.scroll} tabIndex={0} role="region" aria-label="Changes">
      <table className={setup.table}>
        <thead>
          <tr>
            <th scope="col">Setting</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {changes.slice(0, maxShown).map(({ path, before, after, overridden_by: outer }) => (
            <tr key={path}>
              <th scope="row">{path}</th>
              <td data-title="Before">{before ?? 'not set'}</td>
              <td data-title="After">
                {after ?? 'not set'}
                {outer === null ? '' : ` (without effect: ${outer} decides)`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {changes.length > maxShown ? <p>{changes.length - maxShown} more.</p> : null}
    </div>
  );
}
