/** Finds the key in the two headers that clients send it in. */

const scheme = 'bearer';

/**
 * The key that the client presented; '' for none or two different ones (B16: the gateway does not guess). An
 * empty header counts as absent, since some clients send an empty one next to the real one.
 */
export function presentedKey(
  authorization: string | undefined,
  xApiKey: string | undefined,
): string {
  const bearer = authorization === undefined ? '' : readBearer(authorization.trim());
  const key = xApiKey === undefined ? '' : xApiKey.trim();
  if (bearer === undefined) return '';
  if (bearer === '') return key;
  return key === '' || key === bearer ? bearer : '';
}

/** The credential of `Bearer KEY`; '' when there is none, undefined for another scheme. */
function readBearer(header: string): string | undefined {
  if (header === '') return '';
  if (header.slice(0, scheme.length).toLowerCase() !== scheme) return undefined;
  const rest = header.slice(scheme.length);
  if (rest === '') return '';
  return rest.startsWith(' ') || rest.startsWith('\t') ? rest.trimStart() : undefined;
}
