/**
 * A table of any length. Only the rows in sight and the active one are on the page. The owner of the table learns which
 * are in sight, and fetches those that it lacks. Arrow keys, Page Up and Down, Home and End move between the rows.
 * Enter opens one. On a phone each row is a card: its cells below each other, each with the title of its column.
 */
import { defaultRangeExtractor, useVirtualizer, type Range } from '@tanstack/react-virtual';
import {
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type CSSProperties,
  type KeyboardEvent,
  type ReactElement,
  type ReactNode,
} from 'react';
import { classNames } from './class-names.ts';
import styles from './data-table.module.css';
import { useNarrow } from './use-narrow.ts';

export interface Column<Row> {
  readonly id: string;
  readonly title: string;
  /** Width of a grid track: `8rem`, `minmax(8rem, 2fr)`. */
  readonly width: string;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers are at the end. */
  readonly align?: 'end';
  /** Its title orders the table. */
  readonly sortable?: true;
}

interface Sorting {
  /** Id of the column that orders the table, the highest first; another text: none does. */
  readonly by: string;
  readonly onSort: (column: string) => void;
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
  /** First and last row in sight; the function must be stable, or it is called with each draw. */
  readonly onSight?: (first: number, last: number) => void;
  /** There are more rows than `count`. */
  readonly hasMore?: boolean;
  readonly sort?: Sorting;
  /** Narrowest width of all columns; below it the table scrolls sideways. */
  readonly minWidth?: string;
  /** Tallest height before it scrolls. */
  readonly maxHeight?: string;
}

const rowPx = 36;
/** Until a card is measured. */
const cardPx = 120;
const pageRows = 10;
const overscan = 12;

export function DataTable<Row>(props: DataTableProps<Row>): ReactElement {
  const { label, columns, count, minWidth = '40rem', maxHeight = '70dvh', onSight } = props;
  const frame = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const toFocus = useRef<number | undefined>(undefined);
  const isNarrow = useNarrow();
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => frame.current,
    estimateSize: () => (isNarrow ? cardPx : rowPx),
    overscan,
    // The active row stays on the page when it is scrolled away: removed, it would lose the focus, and the keys would
    // lead nowhere.
    rangeExtractor: (range) => withRow(Math.min(active, count - 1), range),
    scrollPaddingStart: isNarrow ? 0 : rowPx,
  });
  // A card is higher than a row: heights measured in one layout are wrong in the other.
  useEffect(() => virtualizer.measure(), [virtualizer, isNarrow]);
  const items = virtualizer.getVirtualItems();
  const { startIndex: first, endIndex: last } = virtualizer.range ?? { startIndex: 0, endIndex: 0 };
  useEffect(() => onSight?.(first, last), [onSight, first, last]);

  // A row that is far away comes onto the page when it is the active one.
  useLayoutEffect(() => {
    if (toFocus.current !== undefined) focusRow(frame.current, toFocus.current);
    toFocus.current = undefined;
  }, [active]);

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
        <Header columns={columns} sort={props.sort} />
        <div role="rowgroup" className={styles.body} style={{ height: virtualizer.getTotalSize() }}>
          {items.map((item) => (
            <TableRow
              key={item.key}
              {...props}
              index={item.index}
              top={item.start}
              cardRef={isNarrow ? virtualizer.measureElement : undefined}
              isActive={item.index === Math.min(active, count - 1)}
              onFocus={() => setActive(item.index)}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

/** Indexes of the rows in sight and around them, and of one more, in their order. */
function withRow(index: number, range: Range): number[] {
  const near = defaultRangeExtractor(range);
  if (index < 0 || near.includes(index)) return near;
  return [...near, index].toSorted((a, b) => a - b);
}

interface HeaderProps<Row> {
  readonly columns: readonly Column<Row>[];
  readonly sort: Sorting | undefined;
}

function Header<Row>({ columns, sort }: HeaderProps<Row>): ReactElement {
  return (
    <div role="rowgroup">
      <div role="row" aria-rowindex={1} className={styles.header}>
        {columns.map(({ id, title, align, sortable }) => (
          <div
            key={id}
            role="columnheader"
            aria-sort={sort?.by === id ? 'descending' : undefined}
            className={classNames(styles.cell, align === 'end' && styles.end)}
          >
            {sort === undefined || sortable === undefined ? (
              title
            ) : (
              <button type="button" className={styles.sort} onClick={() => sort.onSort(id)}>
                {title}
                <span aria-hidden="true">{sort.by === id ? ' ↓' : ''}</span>
              </button>
            )}
          </div>
        ))}
      </div>
    </div>
  );
}

interface TableRowProps<Row> extends DataTableProps<Row> {
  readonly index: number;
  readonly top: number;
  /** Measures it where rows are cards. */
  readonly cardRef: ((element: HTMLElement | null) => void) | undefined;
  readonly isActive: boolean;
  readonly onFocus: () => void;
}

function TableRow<Row>(props: TableRowProps<Row>): ReactElement {
  const { columns, rowAt, rowKey, onOpen, selected, index, top, cardRef, isActive, onFocus } =
    props;
  const row = rowAt(index);
  const isSelected = row !== undefined && selected === rowKey(row);
  const open = (): void => {
    if (row !== undefined) onOpen?.(row);
  };
  return (
    <div
      ref={cardRef}
      data-index={index}
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
      style={{
        height: cardRef === undefined ? rowPx : undefined,
        transform: `translateY(${top}px)`,
      }}
      onFocus={onFocus}
      onClick={open}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && event.target === event.currentTarget) open();
      }}
    >
      {columns.map(({ id, title, cell, align }) => (
        <div
          key={id}
          role="gridcell"
          data-title={title}
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
  // A row that is scrolled away and not fetched cannot be opened: in sight again, it is fetched.
  ['Enter', 0],
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
