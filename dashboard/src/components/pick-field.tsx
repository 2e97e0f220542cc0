/** Several names, each a chip: picked from a list, or typed, since a pattern such as `openai/*` is in no list. */
import { useId, useState, type KeyboardEvent, type ReactElement } from 'react';
import { classNames } from './class-names.ts';
import { FieldFrame, described, type FieldTexts } from './field.tsx';
import fieldStyles from './field.module.css';
import { Icon } from './icon.tsx';
import { useListbox } from './listbox.ts';
import styles from './pick-field.module.css';

export interface Offer {
  readonly value: string;
  /** What it stands for, beside it. */
  readonly about?: string;
}

export interface PickFieldProps extends FieldTexts {
  readonly values: readonly string[];
  readonly onChange: (values: readonly string[]) => void;
  readonly offers: readonly Offer[];
  readonly placeholder?: string;
}

/** Longer lists make browsers slow. */
const maxOffers = 100;

export function PickField(props: PickFieldProps): ReactElement {
  const { label, hint, error, values, onChange, offers, placeholder } = props;
  const id = useId();
  const [typed, setTyped] = useState('');
  const [isOpen, setOpen] = useState(false);
  const part = typed.trim().toLowerCase();
  const found = offers
    .filter(({ value }) => value.toLowerCase().includes(part) && !values.includes(value))
    .slice(0, maxOffers);
  const add = (text: string): void => {
    const added = namesIn(text).filter((name) => !values.includes(name));
    setTyped('');
    if (added.length > 0) onChange(withAdded(values, added));
  };
  const listbox = useListbox({
    count: found.length,
    isOpen,
    first: -1,
    onChoose: (index) => {
      add(found[index]?.value ?? '');
      listbox.mark(-1);
    },
  });
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>): void => {
    if (event.key === 'ArrowDown') setOpen(true);
    if (listbox.onKey(event)) return;
    if (event.key === 'Escape' && isOpen && found.length > 0) {
      // Closes the list, and not the window that the field is in.
      event.stopPropagation();
      setOpen(false);
    } else if (event.key === 'Enter' && typed.trim() !== '') {
      event.preventDefault();
      add(typed);
    } else if (event.key === 'Backspace' && typed === '') onChange(values.slice(0, -1));
  };
  const texts = { label, hint, error };
  return (
    <FieldFrame id={id} {...texts}>
      <div className={styles.frame}>
        <div className={classNames(fieldStyles.input, styles.chips)}>
          <Chips values={values} onRemove={(value) => onChange(without(values, value))} />
          <input
            type="text"
            autoComplete="off"
            spellCheck={false}
            {...described(id, texts)}
            {...listbox.field}
            id={id}
            className={styles.typed}
            placeholder={values.length === 0 ? placeholder : undefined}
            value={typed}
            onFocus={() => setOpen(true)}
            onClick={() => setOpen(true)}
            // What was typed and not confirmed counts: it is in the field.
            onBlur={() => {
              setOpen(false);
              add(typed);
            }}
            onKeyDown={onKeyDown}
            onChange={({ currentTarget: { value } }) => {
              listbox.mark(-1);
              setOpen(true);
              if (/[,\n]/.test(value)) add(value);
              else setTyped(value);
            }}
          />
        </div>
        {isOpen && found.length > 0 ? (
          <Suggestions label={label} offers={found} listbox={listbox} />
        ) : null}
      </div>
    </FieldFrame>
  );
}

interface ChipsProps {
  readonly values: readonly string[];
  readonly onRemove: (value: string) => void;
}

function Chips({ values, onRemove }: ChipsProps): ReactElement {
  return (
    <>
      {values.map((value) => (
        <span key={value} className={styles.chip}>
          <span className={styles.text} title={value}>
            {value}
          </span>
          <button
            type="button"
            className={styles.remove}
            aria-label={`Remove ${value}`}
            onClick={() => onRemove(value)}
          >
            <Icon name="close" size={10} />
          </button>
        </span>
      ))}
    </>
  );
}

interface SuggestionsProps {
  readonly label: string;
  readonly offers: readonly Offer[];
  readonly listbox: ReturnType<typeof useListbox>;
}

function Suggestions({ label, offers, listbox }: SuggestionsProps): ReactElement {
  return (
    <ul {...listbox.list} className={styles.list} aria-label={`${label}: suggestions`}>
      {offers.map(({ value, about }, index) => (
        <li key={value} {...listbox.option(index)} className={styles.option}>
          <span className={styles.text}>{value}</span>
          {about === undefined ? null : <span className={styles.about}>{about}</span>}
        </li>
      ))}
    </ul>
  );
}

function without(values: readonly string[], gone: string): readonly string[] {
  return values.filter((value) => value !== gone);
}

function namesIn(text: string): readonly string[] {
  const names = text.split(/[,\n]/).map((name) => name.trim());
  return [...new Set(names)].filter((name) => name !== '');
}

const everything = '*';

/** What names everything goes when something narrower is named, and the other way round. */
function withAdded(values: readonly string[], added: readonly string[]): readonly string[] {
  if (added.includes(everything)) return [everything];
  return [...values.filter((value) => value !== everything), ...added];
}
