/**
 * A text field with a list of choices below it, usable by keyboard: the attributes and keys of ARIA's combobox pattern.
 */
import { useId, useState, type KeyboardEvent } from 'react';

interface ListboxOptions {
  /** Number of entries that the list shows. */
  readonly count: number;
  readonly isOpen: boolean;
  readonly onChoose: (index: number) => void;
  /** Entry that is marked before an arrow was pressed; -1: none. */
  readonly first?: number;
}

/** @returns what the field, the list and its entries are given; `mark` moves the mark, -1 takes it away. */
export function useListbox({ count, isOpen, onChoose, first = 0 }: ListboxOptions) {
  const id = useId();
  const [wanted, mark] = useState(first);
  const marked = isOpen ? Math.min(wanted, count - 1) : -1;
  const optionId = (index: number): string => `${id}-${index}`;
  const move = (index: number): void => {
    mark(index);
    document.getElementById(optionId(index))?.scrollIntoView({ block: 'nearest' });
  };
  /** True where the key was for the list. */
  const onKey = (event: KeyboardEvent): boolean => {
    const steps: { readonly [key: string]: number } = {
      ArrowDown: marked + 1 < count ? marked + 1 : 0,
      ArrowUp: marked > 0 ? marked - 1 : count - 1,
    };
    const next = steps[event.key];
    if (count === 0 || !isOpen) return false;
    if (next !== undefined) move(next);
    else if (event.key === 'Enter' && marked >= 0) onChoose(marked);
    else return false;
    event.preventDefault();
    return true;
  };
  return {
    marked,
    mark,
    onKey,
    field: {
      role: 'combobox',
      'aria-autocomplete': 'list',
      'aria-expanded': isOpen && count > 0,
      'aria-controls': `${id}-list`,
      'aria-activedescendant': marked >= 0 ? optionId(marked) : undefined,
    } as const,
    // Browsers lead Tab to a list that scrolls. It goes when the field loses the focus, and the focus would be lost with it.
    list: { id: `${id}-list`, role: 'listbox', tabIndex: -1 } as const,
    option: (index: number) => ({
      id: optionId(index),
      role: 'option' as const,
      'aria-selected': index === marked,
      // The field keeps the focus.
      onPointerDown: (event: { preventDefault(): void }) => event.preventDefault(),
      onClick: () => onChoose(index),
    }),
  };
}
