/** Where the next turn is written. */
import { useRef, type ClipboardEvent, type KeyboardEvent, type ReactElement } from 'react';
import { Button, IconButton } from '../../components/button.tsx';
import { TextArea } from '../../components/field.tsx';
import { useToast } from '../../components/toast.tsx';
import styles from './playground.module.css';
import type { Picture, UserTurn } from './formats/turns.ts';

const pictureTypes = 'image/png,image/jpeg,image/gif,image/webp';

interface ComposerProps {
  readonly draft: UserTurn;
  readonly onDraft: (change: (draft: UserTurn) => UserTurn) => void;
  readonly running: boolean;
  /** The conversation ends with a question: it can be sent as it is. */
  readonly waiting: boolean;
  /** False: it could not be sent, and stays. */
  readonly onSend: (added: readonly UserTurn[]) => boolean;
  readonly onStop: () => void;
  readonly onClear: () => void;
}

export function Composer(props: ComposerProps): ReactElement {
  const { draft, onDraft, running, waiting, onSend, onStop, onClear } = props;
  const { text, pictures } = draft;
  const toast = useToast();
  const isEmpty = text.trim() === '' && pictures.length === 0;
  const cannotSend = isEmpty && !waiting;
  const setPictures = (change: (pictures: UserTurn['pictures']) => UserTurn['pictures']): void =>
    onDraft((before) => ({ ...before, pictures: change(before.pictures) }));
  const submit = (): void => {
    if (running || cannotSend || !onSend(isEmpty ? [] : [draft])) return;
    onDraft((before) => ({ ...before, text: '', pictures: [] }));
  };
  const add = (list: FileList): void => {
    // The list is emptied with its field: it is read now.
    Promise.all([...list].map((file) => readPicture(file))).then(
      (read) => setPictures((before) => [...before, ...read]),
      (error: unknown) => toast.failed(error),
    );
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === 'Escape' && running) onStop();
    // Enter also ends what an input method composes.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit();
  };
  const paste = (event: ClipboardEvent): void => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };
  return (
    <div className={styles.composer}>
      <TextArea
        label="Message"
        hint={
          waiting && !running
            ? 'The conversation has no answer yet: send it as it is, or add a message.'
            : 'Enter sends, Shift+Enter begins a new line, Escape stops.'
        }
        rows={3}
        value={text}
        onChange={(typed) => onDraft((before) => ({ ...before, text: typed }))}
        onKeyDown={keys}
        onPaste={paste}
      />
      <Pictures pictures={pictures} onChange={(left) => setPictures(() => left)} />
      <div className={styles.buttons}>
        {running ? (
          <Button look="danger" icon="close" onClick={onStop}>
            Stop
          </Button>
        ) : (
          <Button look="primary" disabled={cannotSend} onClick={submit}>
            Send
          </Button>
        )}
        <PictureButton onFiles={add} />
        <Button look="quiet" onClick={onClear}>
          New conversation
        </Button>
      </div>
    </div>
  );
}

interface PicturesProps {
  readonly pictures: readonly Picture[];
  readonly onChange: (pictures: readonly Picture[]) => void;
}

function Pictures({ pictures, onChange }: PicturesProps): ReactElement | null {
  if (pictures.length === 0) return null;
  return (
    <ul className={styles.pictures}>
      {pictures.map((picture, index) => (
        <li key={`${index}-${picture.name}`}>
          <span className={styles.name}>{picture.name}</span>
          <IconButton
            small
            icon="close"
            label={`Remove ${picture.name}`}
            onClick={() => onChange(pictures.filter((other) => other !== picture))}
          />
        </li>
      ))}
    </ul>
  );
}

function PictureButton({ onFiles }: { onFiles: (files: FileList) => void }): ReactElement {
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={field}
        className="visually-hidden"
        type="file"
        aria-label="Images"
        tabIndex={-1}
        accept={pictureTypes}
        multiple
        onChange={(event) => {
          const { files } = event.currentTarget;
          if (files !== null) onFiles(files);
          event.currentTarget.value = '';
        }}
      />
      <Button icon="plus" onClick={() => field.current?.click()}>
        Images
      </Button>
    </>
  );
}

/** @throws Error where the browser cannot read it, or it is not a picture. */
async function readPicture(file: File): Promise<Picture> {
  if (!pictureTypes.split(',').includes(file.type)) {
    throw new Error(`${file.name} is not a PNG, JPEG, GIF or WebP.`);
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = '';
  const portion = 0x8000;
  for (let at = 0; at < bytes.length; at += portion) {
    binary += String.fromCharCode(...bytes.subarray(at, at + portion));
  }
  return { name: file.name, type: file.type, base64: btoa(binary) };
}
