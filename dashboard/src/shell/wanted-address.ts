/** The address that a person opened while signed out. The way over an identity provider always ends at the first page. */

const storageKey = 'model-gateway-wanted';
const firstPage = '/';

/** Call it when the person leaves for the identity provider. */
export function keepAddress(): void {
  const { pathname, hash } = location;
  const search = withoutFailure(location.search);
  const wanted = pathname + search + hash;
  try {
    if (wanted !== firstPage) sessionStorage.setItem(storageKey, wanted);
  } catch {
    // Private windows may refuse: the person arrives at the first page.
  }
}

/** Call it before the first render: the first page becomes the address that was kept. */
export function restoreAddress(): void {
  // A failed sign-in is shown on the first page, as ?sign_in; the address waits for the next attempt.
  if (location.pathname !== firstPage || location.search !== '') return;
  try {
    const wanted = sessionStorage.getItem(storageKey);
    if (wanted === null) return;
    sessionStorage.removeItem(storageKey);
    history.replaceState(null, '', new URL(wanted, location.origin + firstPage));
  } catch {
    // As above.
  }
}

/** `sign_in` says why the sign-in before failed. */
function withoutFailure(search: string): string {
  const query = new URLSearchParams(search);
  query.delete('sign_in');
  return query.size === 0 ? '' : `?${query}`;
}
