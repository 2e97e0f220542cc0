/** Faults of HTTP itself: broken framing, odd statuses and headers, bombs, drips, trailers. */
import { runRows } from './run-rows.ts';
import { wireRows } from './wire-rows.ts';

runRows(wireRows);
