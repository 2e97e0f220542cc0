/** Whether text is coloured: tables, the banner and the log decide alike. */

/** FORCE_COLOR decides where it is set (0 and false: no colours), then NO_COLOR (any value), then the terminal. */
export function wantsColour(
  isTerminal: boolean,
  env: { readonly [name: string]: string | undefined },
): boolean {
  const forced = env['FORCE_COLOR'] ?? '';
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return isTerminal && env['TERM'] !== 'dumb' && (env['NO_COLOR'] ?? '') === '';
}
