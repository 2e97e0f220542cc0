/** Whose a file or directory is, for messages about one that is closed to this user. */

/**
 * `: it belongs to user 0, and this program runs as user 1000`; empty where it is this user's, or cannot be known.
 * @param owner its user id
 */
export function ownerText(owner: number | undefined): string {
  const own = process.getuid?.();
  if (owner === undefined || own === undefined || owner === own) return '';
  return `: it belongs to user ${owner}, and this program runs as user ${own}`;
}
