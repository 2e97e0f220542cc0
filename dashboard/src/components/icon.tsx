/** Line icons of 16 px, drawn here: none is fetched. */
import type { ReactElement } from 'react';

const paths = {
  overview: 'M2.5 13.5h11M4 11V7.5M8 11V3M12 11V6',
  calls: 'M3 4h10M3 8h10M3 12h6',
  keys: 'M9.5 6.5a3 3 0 1 1-3-3 3 3 0 0 1 3 3ZM8.8 8.8l4.7 4.7M11.5 11.5l1.5-1.5',
  models: 'M8 2 2.5 5 8 8l5.5-3L8 2ZM2.5 8 8 11l5.5-3M2.5 11 8 14l5.5-3',
  playground: 'M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z',
  setup: 'M3 5h5M11 5h2M3 11h2M8 11h5M9.5 3.5v3M6.5 9.5v3',
  errors: 'M5.5 2.5h5l3 3v5l-3 3h-5l-3-3v-5zM8 5v3.5M8 10.8v.2',
  events:
    'M8 2.5a3.5 3.5 0 0 0-3.5 3.5c0 3.5-1.5 4.5-1.5 4.5h10s-1.5-1-1.5-4.5A3.5 3.5 0 0 0 8 2.5ZM6.8 13h2.4',
  audit: 'M4 2.5h8v11H4zM6.2 5.5h3.6M6.2 8h3.6M6.2 10.5h2',
  people: 'M8 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM3 13.5c.6-2.4 2.6-3.5 5-3.5s4.4 1.1 5 3.5',
  close: 'M4 4l8 8M12 4l-8 8',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z',
  check: 'M3 8.5l3.5 3.5L13 4.5',
  warning: 'M8 2.5 14 13H2L8 2.5ZM8 6.5v3M8 11.3v.2',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 7.5v3.5M8 5v.2',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.5M13 2.5v2.5h-2.5',
  plus: 'M8 3v10M3 8h10',
  search: 'M7 11.5A4.5 4.5 0 1 0 7 2.5a4.5 4.5 0 0 0 0 9ZM10.5 10.5 14 14',
  sun: 'M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M3.4 12.6l1.1-1.1M11.5 4.5l1.1-1.1',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5Z',
  system: 'M2 3h12v8H2zM6 13.5h4M8 11v2.5',
  leave: 'M6.5 2.5h-4v11h4M10 5l3 3-3 3M13 8H6',
  chevron: 'M6 4l4 4-4 4',
  download: 'M8 2.5v8M4.5 7.5 8 11l3.5-3.5M2.5 13.5h11',
  columns: 'M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10',
  filter: 'M2.5 3.5h11l-4.2 5v4l-2.6 1.2V8.5z',
  trash: 'M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9',
  external: 'M9 2.5h4.5V7M13.5 2.5 7.5 8.5M11.5 9.5v4h-9v-9h4',
} as const;

export type IconName = keyof typeof paths;

/** Decoration: what it means must be beside it or in a label. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }): ReactElement {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={paths[name]} />
    </svg>
  );
}
