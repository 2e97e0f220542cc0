/** Names the owner of a file or directory in messages about one that this user may not read. */

/**
 * `: it belongs to user 0, and this program runs as user 1000`; empty where this user is the owner, or the owner is unknown.
 * @param owner its user id
 */
export function ownerText(owner: number | undefined): string {
  const own = process.getuid?.();
  if (owner === undefined || own === undefined || owner === own) return '';
  return `: it belongs to user ${owner}, and this program runs as user ${own}`;
}
