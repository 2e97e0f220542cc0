/** Making and changing a key. The secret is shown once, in the window that made it. */
import { useState, type ReactElement } from 'react';
import { Link } from 'wouter';
import { useSession } from '../../api/session.ts';
import { reachable, useStatus } from '../../api/status.ts';
import { Button } from '../../components/button.tsx';
import { Choice } from '../../components/choice.tsx';
import { CodeBlock } from '../../components/code-block.tsx';
import { Dialog } from '../../components/dialog.tsx';
import layout from '../../components/layout.module.css';
import { useUnsaved } from '../../components/leaving.tsx';
import { useListedModels } from '../../components/model-field.tsx';
import { ErrorPanel } from '../../components/state.tsx';
import { Tabs } from '../../components/tabs.tsx';
import { secretMark } from '../../components/typed.ts';
import { keyPath, useChange, type Key, type NewKey } from './api.ts';
import {
  changedOnly,
  emptyKey,
  keyChange,
  keyFieldsOf,
  newKeyBody,
  presets,
  withPreset,
} from './form.ts';
import { KeyForm } from './key-form.tsx';
import styles from './keys.module.css';
import { wrongOf } from './policy-form.tsx';
import { exampleModel, keySnippets } from './snippets.ts';

interface WindowProps {
  readonly open: boolean;
  readonly onClose: () => void;
}

/** What is lost where the page is left before a new secret is there. */
export const secretLoss =
  'A new secret is on its way. It is shown on this page only, and is lost when you leave the page.';

export function CreateKey({ open, onClose }: WindowProps): ReactElement {
  const [fields, setFields] = useState(emptyKey);
  const [preset, setPreset] = useState(presets[0]);
  const create = useChange<NewKey>();
  // Not before the answer is there: it has the secret, which nothing shows a second time.
  const isOpen = open || create.isPending;
  useUnsaved(create.isPending, secretLoss);
  const close = (): void => {
    if (create.isPending) return;
    setFields(emptyKey);
    setPreset(presets[0]);
    create.reset();
    onClose();
  };
  if (create.data !== undefined) {
    return <SecretOnce open onClose={close} made={create.data} />;
  }
  const submit = (): void =>
    create.mutate({ method: 'POST', path: '/api/keys', body: newKeyBody(fields) });
  return (
    <Dialog
      open={isOpen}
      onClose={close}
      title="Create a key"
      shape="wide"
      footer={
        <>
          <Button busy={create.isPending} onClick={close}>
            Cancel
          </Button>
          <Button look="primary" busy={create.isPending} onClick={submit}>
            Create key
          </Button>
        </>
      }
    >
      <div className={layout.sections}>
        {create.error === null ? null : <ErrorPanel error={create.error} />}
        <div className={styles.presets}>
          <Choice
            label="Preset"
            options={presets}
            value={preset?.value ?? ''}
            onChange={(value) => {
              const chosen = presets.find((each) => each.value === value);
              if (chosen === undefined) return;
              setPreset(chosen);
              setFields(withPreset(fields, chosen));
            }}
          />
          <span className={layout.muted}>{preset?.about}</span>
        </div>
        <KeyForm fields={fields} onChange={setFields} wrong={wrongOf(create.error)} />
      </div>
    </Dialog>
  );
}

/** After making or rotating a key. */
export function SecretOnce({
  open,
  onClose,
  made,
}: WindowProps & { readonly made: NewKey }): ReactElement {
  // The answer with the secret may come when the session has ended.
  const isSignedIn = useSession().data?.signed_in === true;
  return (
    <Dialog
      open={open && isSignedIn}
      onClose={onClose}
      title="Copy the secret now"
      description={`The secret of ${made.name} is shown only now and is not stored. Anyone who has it can call with this key.`}
      shape="wide"
      footer={
        <Button look="primary" onClick={onClose}>
          I have copied it
        </Button>
      }
    >
      <div className={layout.sections} {...secretMark}>
        <CodeBlock text={made.key} label="The secret of the key" />
        <FirstCalls made={made} />
        <p className={layout.muted}>
          <Link href="/setup">Setup</Link> has snippets for other clients.
        </p>
      </div>
    </Dialog>
  );
}

/** Code that calls with the new key, ready to paste. */
function FirstCalls({ made }: { readonly made: NewKey }): ReactElement | null {
  const url = useStatus().data?.url;
  const listed = useListedModels().data;
  if (url === undefined || listed === undefined) return null;
  const names = listed.map(({ id }) => id);
  const model = exampleModel(made.models, names);
  const snippets = keySnippets({ url: reachable(url), key: made.key, model });
  return (
    <Tabs
      label="A first call"
      tabs={snippets.map(({ id, title, text }) => ({
        id,
        title,
        content: <CodeBlock text={text} label={`First call: ${title}`} />,
      }))}
    />
  );
}

export function EditKey({
  subject,
  onClose,
}: {
  readonly subject: Key;
  readonly onClose: () => void;
}): ReactElement {
  const [before] = useState(() => keyFieldsOf(subject));
  const [fields, setFields] = useState(before);
  const change = useChange<Key>();
  // Not before the answer is there: it may be a refusal.
  const close = (): void => (change.isPending ? undefined : onClose());
  const submit = (): void =>
    change.mutate(
      {
        method: 'PATCH',
        path: keyPath(subject.id),
        body: changedOnly(keyChange(fields), keyChange(before)),
      },
      { onSuccess: onClose },
    );
  return (
    <Dialog
      open
      onClose={close}
      title="Change the key"
      description="Changes apply from the next call on."
      shape="wide"
      footer={
        <>
          <Button busy={change.isPending} onClick={close}>
            Cancel
          </Button>
          <Button look="primary" busy={change.isPending} onClick={submit}>
            Save
          </Button>
        </>
      }
    >
      <div className={layout.sections}>
        {change.error === null ? null : <ErrorPanel error={change.error} />}
        <KeyForm fields={fields} onChange={setFields} wrong={wrongOf(change.error)} isChange />
      </div>
    </Dialog>
  );
}
