/** Faults before the first content: refused with the right status, charged nothing. */
import { beforeContentRows } from './before-content-rows.ts';
import { runRows } from './run-rows.ts';

runRows(beforeContentRows);
