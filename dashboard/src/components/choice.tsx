/** One of a few, all in sight. */
import type { ReactElement } from 'react';
import styles from './choice.module.css';
import type { Choice as Option } from './field.tsx';

interface ChoiceProps {
  /** What is chosen; read aloud. */
  readonly label: string;
  readonly options: readonly Option[];
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export function Choice({ label, options, value, onChange }: ChoiceProps): ReactElement {
  return (
    <div role="group" aria-label={label} className={styles.choice}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          className={styles.option}
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
        >
          {option.label}
        </button>
      ))}
    </div>
  );
}
