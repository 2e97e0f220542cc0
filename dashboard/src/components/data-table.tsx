/**
 * A table of any length of which only the rows in sight are on the page. Rows may be there or still to
 * come; who shows the table fetches them when told which are in sight. Arrow keys, Page Up and Down, Home
 * and End move between the rows, Enter opens one.
 */
import { useVirtualizer } from '@tanstack/react-virtual';
import {
  useEffect,
  useRef,
  useState,
  type CSSProperties,
  type KeyboardEvent,
  type ReactElement,
  type ReactNode,
} from 'react';
import { classNames } from './class-names.ts';
import styles from './data-table.module.css';

export interface Column<Row> {
  readonly id: string;
  readonly title: string;
  /** Width of a grid track: `8rem`, `minmax(8rem, 2fr)`. */
  readonly width: string;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers stand at the end. */
  readonly align?: 'end';
}

export interface DataTableProps<Row> {
  /** What it is a table of; read aloud. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  /** Rows that are known to exist. */
  readonly count: number;
  /** Undefined: not fetched yet. */
  readonly rowAt: (index: number) => Row | undefined;
  readonly rowKey: (row: Row) => string;
  /** Makes rows something to click. */
  readonly onOpen?: (row: Row) => void;
  /** Key of the row that is open. */
  readonly selected?: string | undefined;
  /** First and last row in sight; stable, or it is told of each draw. */
  readonly onSight?: (first: number, last: number) => void;
  /** There are more rows than `count`. */
  readonly hasMore?: boolean;
  /** Narrowest width of all columns; below it the table scrolls sideways. */
  readonly minWidth?: string;
  /** Tallest height before it scrolls. */
  readonly maxHeight?: string;
}

const rowPx = 36;
const pageRows = 10;
const overscan = 12;

export function DataTable<Row>(props: DataTableProps<Row>): ReactElement {
  const { label, columns, count, minWidth = '40rem', maxHeight = '70dvh', onSight } = props;
  const frame = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const toFocus = useRef<number | undefined>(undefined);
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => frame.current,
    estimateSize: () => rowPx,
    overscan,
    scrollPaddingStart: rowPx,
  });
  const items = virtualizer.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => onSight?.(first, last), [onSight, first, last]);

  // The row may be on the page some draws later only, and without a focused one the keys lead nowhere.
  useEffect(() => {
    if (toFocus.current === undefined) return;
    const { activeElement } = document;
    const isElsewhere = activeElement !== document.body && !frame.current?.contains(activeElement);
    if (isElsewhere || focusRow(frame.current, toFocus.current)) toFocus.current = undefined;
  });

  const moveTo = (index: number): void => {
    const target = Math.max(0, Math.min(count - 1, index));
    toFocus.current = focusRow(frame.current, target) ? undefined : target;
    setActive(target);
    virtualizer.scrollToIndex(target);
  };
  // Grid tracks are set as properties of the element, not as text of a style: the CSP has no inline styles.
  const tracks = {
    '--table-columns': columns.map(({ width }) => width).join(' '),
    '--table-width': minWidth,
  } as CSSProperties;
  return (
    <div ref={frame} className={styles.frame} style={{ maxHeight }}>
      <div
        role="grid"
        aria-label={label}
        aria-rowcount={props.hasMore === true ? -1 : count + 1}
        className={styles.grid}
        style={tracks}
        onKeyDown={(event) => onKey(event, active, moveTo)}
      >
        <Header columns={columns} />
        <div role="rowgroup" className={styles.body} style={{ height: virtualizer.getTotalSize() }}>
          {items.map((item) => (
            <TableRow
              key={item.key}
              {...props}
              index={item.index}
              top={item.start}
              isActive={item.index === Math.min(active, count - 1)}
              onFocus={() => setActive(item.index)}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

function Header<Row>({ columns }: { columns: readonly Column<Row>[] }): ReactElement {
  return (
    <div role="rowgroup">
      <div role="row" aria-rowindex={1} className={styles.header}>
        {columns.map(({ id, title, align }) => (
          <div
            key={id}
            role="columnheader"
            className={classNames(styles.cell, align === 'end' && styles.end)}
          >
            {title}
          </div>
        ))}
      </div>
    </div>
  );
}

interface TableRowProps<Row> extends DataTableProps<Row> {
  readonly index: number;
  readonly top: number;
  readonly isActive: boolean;
  readonly onFocus: () => void;
}

function TableRow<Row>(props: TableRowProps<Row>): ReactElement {
  const { columns, rowAt, rowKey, onOpen, selected, index, top, isActive, onFocus } = props;
  const row = rowAt(index);
  const isSelected = row !== undefined && selected === rowKey(row);
  const open = (): void => {
    if (row !== undefined) onOpen?.(row);
  };
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={onOpen === undefined ? undefined : isSelected}
      data-row={index}
      tabIndex={isActive ? 0 : -1}
      className={classNames(
        styles.row,
        onOpen !== undefined && styles.openable,
        isSelected && styles.selected,
      )}
      style={{ height: rowPx, transform: `translateY(${top}px)` }}
      onFocus={onFocus}
      onClick={open}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && event.target === event.currentTarget) open();
      }}
    >
      {columns.map(({ id, cell, align }) => (
        <div
          key={id}
          role="gridcell"
          className={classNames(styles.cell, align === 'end' && styles.end)}
        >
          {row === undefined ? <span className={styles.pending}>…</span> : cell(row)}
        </div>
      ))}
    </div>
  );
}

const steps: ReadonlyMap<string, number> = new Map([
  ['ArrowDown', 1],
  ['ArrowUp', -1],
  ['PageDown', pageRows],
  ['PageUp', -pageRows],
  ['Home', Number.NEGATIVE_INFINITY],
  ['End', Number.POSITIVE_INFINITY],
]);

function onKey(event: KeyboardEvent, active: number, moveTo: (index: number) => void): void {
  const step = steps.get(event.key);
  // Inside a field or button of a row the keys are its own.
  const isOnRow = event.target instanceof HTMLElement && event.target.dataset['row'] !== undefined;
  if (step === undefined || !isOnRow) return;
  event.preventDefault();
  moveTo(active + step);
}

/** False when the row is not on the page. */
function focusRow(frame: HTMLElement | null, index: number): boolean {
  const row = frame?.querySelector<HTMLElement>(`[data-row="${index}"]`);
  row?.focus({ preventScroll: true });
  return row !== null && row !== undefined;
}
