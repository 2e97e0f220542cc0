/** Prompts that are stored in this browser: saved under a name, opened again, deleted. */
import { useState, type FormEvent, type ReactElement } from 'react';
import { Button, IconButton } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { TextField } from '../../components/field.tsx';
import { moment } from '../../format/time.ts';
import type { Snapshot } from './formats/snapshot.ts';
import styles from './playground.module.css';
import { deletePrompt, readSaved, savePrompt } from './saved-prompts.ts';

interface SavedDialogProps {
  /** What would be saved. */
  readonly current: Snapshot;
  readonly onOpen: (snapshot: Snapshot) => void;
  readonly onClose: () => void;
}

const notKept =
  'The browser cannot store it: its storage is full or switched off. Delete saved prompts, or remove images.';

export function SavedDialog({ current, onOpen, onClose }: SavedDialogProps): ReactElement {
  const [saved, setSaved] = useState(readSaved);
  const [name, setName] = useState('');
  const [error, setError] = useState<string>();
  const given = name.trim();
  const take = (changed: typeof saved | undefined): void => {
    setError(changed === undefined ? notKept : undefined);
    if (changed === undefined) return;
    setSaved(changed);
    setName('');
  };
  const save = (event: FormEvent): void => {
    event.preventDefault();
    if (given === '') setError('Give it a name.');
    else take(savePrompt({ name: given, savedAt: new Date().toISOString(), snapshot: current }));
  };
  return (
    <Dialog
      open
      title="Saved prompts"
      description="Settings and conversations, stored in this browser until you delete them. Keys are not stored."
      onClose={onClose}
    >
      <form className={styles.save} onSubmit={save}>
        <TextField label="Name" value={name} error={error} onChange={setName} />
        <Button type="submit" look="primary">
          {saved.some((each) => each.name === given) ? 'Replace' : 'Save'}
        </Button>
      </form>
      {saved.length === 0 ? (
        <p className={styles.hint}>Nothing is saved yet.</p>
      ) : (
        <ul className={styles.saved} aria-label="Saved prompts">
          {saved.map((prompt) => (
            <li key={prompt.name}>
              <div>
                <p className={styles.savedName}>{prompt.name}</p>
                <p className={styles.hint}>
                  {moment(prompt.savedAt)}, {contentOf(prompt.snapshot)}
                </p>
              </div>
              <Button
                small
                aria-label={`Open ${prompt.name}`}
                onClick={() => onOpen(prompt.snapshot)}
              >
                Open
              </Button>
              <IconButton
                small
                icon="trash"
                label={`Delete ${prompt.name}`}
                onClick={() => take(deletePrompt(prompt.name))}
              />
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}

function contentOf({ sides }: Snapshot): string {
  const turns = Math.max(...sides.map((side) => side.turns.length));
  const models = sides.map(({ model }) => model || 'no model').join(', ');
  return `${models}${turns === 0 ? '' : `, ${turns} ${turns === 1 ? 'turn' : 'turns'}`}`;
}
