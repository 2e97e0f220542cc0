/** Form fields: a label that is read aloud, a hint, and the error at the field that it is about. */
import { useId, type ComponentProps, type ReactElement, type ReactNode } from 'react';
import { classNames } from './class-names.ts';
import styles from './field.module.css';

export interface FieldTexts {
  readonly label: string;
  readonly hint?: ReactNode;
  /** What is wrong with the value. */
  readonly error?: string | undefined;
  /** The label is read aloud only: for filters in a row. */
  readonly quietLabel?: boolean | undefined;
}

interface FrameProps extends FieldTexts {
  readonly id: string;
  readonly children: ReactNode;
}

/** A control with its label, hint and error; the control has the id. */
export function FieldFrame({
  id,
  label,
  hint,
  error,
  quietLabel,
  children,
}: FrameProps): ReactElement {
  return (
    <div className={classNames(styles.field, quietLabel === true && styles.quietLabel)}>
      <label className={styles.label} htmlFor={id}>
        {label}
      </label>
      {children}
      {hint === undefined ? null : (
        <div className={styles.hint} id={`${id}-hint`}>
          {hint}
        </div>
      )}
      {error === undefined ? null : (
        <div className={styles.error} id={`${id}-error`} role="alert">
          {error}
        </div>
      )}
    </div>
  );
}

/** What the control says of its hint and its error. */
export function described(id: string, { hint, error }: FieldTexts) {
  const ids = [
    hint === undefined ? '' : `${id}-hint`,
    error === undefined ? '' : `${id}-error`,
  ].filter((each) => each !== '');
  return {
    'aria-describedby': ids.length === 0 ? undefined : ids.join(' '),
    'aria-invalid': error === undefined ? undefined : true,
  };
}

export interface TextFieldProps extends Omit<ComponentProps<'input'>, 'onChange'>, FieldTexts {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly mono?: boolean;
}

/** The words of a field, and what its control gets besides what it is given. */
function useField(texts: FieldTexts, given: string | undefined) {
  const own = useId();
  const id = given ?? own;
  return { frame: { id, ...texts }, control: { ...described(id, texts), id } };
}

export function TextField(props: TextFieldProps): ReactElement {
  const { label, hint, error, quietLabel, onChange, mono, className, ...rest } = props;
  const { frame, control } = useField({ label, hint, error, quietLabel }, rest.id);
  return (
    <FieldFrame {...frame}>
      <input
        type="text"
        autoComplete="off"
        spellCheck={false}
        {...rest}
        {...control}
        className={classNames(styles.input, mono === true && styles.mono, className)}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    </FieldFrame>
  );
}

export interface TextAreaProps extends Omit<ComponentProps<'textarea'>, 'onChange'>, FieldTexts {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly mono?: boolean;
}

export function TextArea(props: TextAreaProps): ReactElement {
  const { label, hint, error, quietLabel, onChange, mono, className, ...rest } = props;
  const { frame, control } = useField({ label, hint, error, quietLabel }, rest.id);
  return (
    <FieldFrame {...frame}>
      <textarea
        spellCheck={false}
        {...rest}
        {...control}
        className={classNames(styles.input, mono === true && styles.mono, className)}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    </FieldFrame>
  );
}

export interface Choice {
  readonly value: string;
  readonly label: string;
}

export interface SelectFieldProps extends FieldTexts {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly choices: readonly Choice[];
  readonly disabled?: boolean;
}

interface OfferedFieldProps extends Omit<TextFieldProps, 'list'> {
  readonly offers: readonly Offer[];
}

/** What the browser offers while typing. */
interface Offer {
  readonly value: string;
  readonly label?: string;
}

/** Any text, with some to choose from. */
export function OfferedField({ offers, ...rest }: OfferedFieldProps): ReactElement {
  const id = useId();
  return (
    <div>
      <TextField {...rest} list={id} />
      <datalist id={id}>
        {offers.map(({ value, label = value }) => (
          <option key={value} value={value} aria-label={label} />
        ))}
      </datalist>
    </div>
  );
}

/** The browser's own list: keyboard, screen reader and phone know it. */
export function SelectField(props: SelectFieldProps): ReactElement {
  const { label, hint, error, quietLabel, value, onChange, choices, disabled = false } = props;
  const id = useId();
  const texts = { label, hint, error, ...(quietLabel === undefined ? {} : { quietLabel }) };
  return (
    <FieldFrame id={id} {...texts}>
      <select
        {...described(id, texts)}
        id={id}
        className={styles.input}
        value={value}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </select>
    </FieldFrame>
  );
}

export interface CheckFieldProps {
  readonly label: ReactNode;
  readonly hint?: ReactNode;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly disabled?: boolean;
}

export function CheckField(props: CheckFieldProps): ReactElement {
  const { label, hint, checked, onChange, disabled = false } = props;
  const id = useId();
  return (
    <div className={styles.check}>
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <div>
        <label htmlFor={id}>{label}</label>
        {hint === undefined ? null : (
          <div className={styles.hint} id={`${id}-hint`}>
            {hint}
          </div>
        )}
      </div>
    </div>
  );
}
