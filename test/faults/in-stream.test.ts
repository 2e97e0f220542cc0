/** Faults in mid-stream: an error frame, no ending, no success in any SDK; oddities are served. */
import { cutRows } from './cut-rows.ts';
import { endingRows, framingRows } from './framing-rows.ts';
import { limitRows } from './limit-rows.ts';
import { choiceRows, messagesOrderRows, usageRows } from './order-rows.ts';
import { responsesRows } from './responses-rows.ts';
import { runRows } from './run-rows.ts';

runRows([
  ...cutRows,
  ...framingRows,
  ...endingRows,
  ...usageRows,
  ...messagesOrderRows,
  ...choiceRows,
  ...limitRows,
  ...responsesRows,
]);
