/** Seeds of histories that once went wrong, and what was wrong then. They are played again each time. */
export const keptSeeds: ReadonlyMap<number, string> = new Map([
  [2703, 'half of "data: [DONE]" was passed on, and the terminator glued to it'],
  [4577, 'the same with "event: message_stop"'],
]);
