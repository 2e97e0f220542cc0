/** Ctrl-K: to any page, key, team, tag, model or call, by the keyboard alone. */
import { Dialog } from '@base-ui/react/dialog';
import { useRef, useState, type ReactElement } from 'react';
import { useLocation } from 'wouter';
import { Icon } from '../components/icon.tsx';
import { useListbox } from '../components/listbox.ts';
import { usePlaces, type Place } from './places.ts';
import styles from './palette.module.css';

interface PaletteProps {
  readonly onClose: () => void;
}

export function Palette({ onClose }: PaletteProps): ReactElement {
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const chosen = useRef<Place | undefined>(undefined);
  // Not deferred: Enter would choose from the places of an earlier text.
  const { places, isAsking } = usePlaces(typed.trim());
  const go = (place: Place | undefined): void => {
    if (place === undefined) return;
    chosen.current = place;
    onClose();
    navigate(place.href);
  };
  const listbox = useListbox({
    count: places.length,
    isOpen: true,
    onChoose: (index) => go(places[index]),
  });
  return (
    <Dialog.Root open onOpenChange={(isOpen) => (isOpen ? undefined : onClose())}>
      <Dialog.Portal>
        <Dialog.Backdrop className={styles.backdrop} />
        <Dialog.Popup
          className={styles.popup}
          aria-label="Go to"
          initialFocus={field}
          finalFocus={() => focusAfter(chosen.current)}
        >
          <div className={styles.field}>
            <Icon name="search" />
            <input
              ref={field}
              type="text"
              autoComplete="off"
              spellCheck={false}
              placeholder="Page, key, team, model or request id"
              aria-label="Go to a page, key, team, tag, model or call"
              {...listbox.field}
              value={typed}
              onChange={({ currentTarget: { value } }) => {
                setTyped(value);
                listbox.mark(0);
              }}
              onKeyDown={(event) => void listbox.onKey(event)}
            />
          </div>
          <Places places={places} listbox={listbox} />
          {places.length === 0 ? (
            <p className={styles.none} role="status">
              {isAsking ? 'Searching…' : 'Nothing has this name.'}
            </p>
          ) : null}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** Where it was, the page that was gone to, or what opens there and takes the focus itself. */
function focusAfter(chosen: Place | undefined): HTMLElement | boolean {
  if (chosen === undefined) return true;
  return chosen.isWindow ? false : (document.getElementById('main') ?? true);
}

interface PlacesProps {
  readonly places: readonly Place[];
  readonly listbox: ReturnType<typeof useListbox>;
}

function Places({ places, listbox }: PlacesProps): ReactElement {
  const groups = [...new Set(places.map(({ group }) => group))];
  return (
    <div {...listbox.list} className={styles.list} aria-label="Places">
      {groups.map((group) => (
        <div key={group} role="group" aria-label={group} className={styles.group}>
          <div className={styles.title} aria-hidden="true">
            {group}
          </div>
          {places.map((place, index) =>
            place.group === group ? (
              <div key={place.href} {...listbox.option(index)} className={styles.place}>
                <Icon name={place.icon} />
                <span className={styles.name} dir="auto">
                  {place.name}
                </span>
                <span className={styles.about}>{place.about}</span>
              </div>
            ) : null,
          )}
        </div>
      ))}
    </div>
  );
}
