/** Parts of a page of which one is shown. */
import { Tabs as Base } from '@base-ui/react/tabs';
import type { ReactElement, ReactNode } from 'react';
import styles from './tabs.module.css';

export interface Tab {
  readonly id: string;
  readonly title: string;
  readonly content: ReactNode;
}

interface TabsProps {
  /** What the parts are of; read aloud. */
  readonly label: string;
  readonly tabs: readonly Tab[];
  /** Id of the one that is shown; without it the first, then what the person chose. */
  readonly value?: string;
  readonly onChange?: (id: string) => void;
}

export function Tabs({ label, tabs, value, onChange }: TabsProps): ReactElement {
  const chosen = value === undefined ? { defaultValue: tabs[0]?.id ?? '' } : { value };
  return (
    <Base.Root {...chosen} onValueChange={(id) => onChange?.(String(id))}>
      <Base.List className={styles.list} aria-label={label}>
        {tabs.map(({ id, title }) => (
          <Base.Tab key={id} value={id} className={styles.tab}>
            {title}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map(({ id, content }) => (
        <Base.Panel key={id} value={id}>
          {content}
        </Base.Panel>
      ))}
    </Base.Root>
  );
}
