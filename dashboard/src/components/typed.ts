/** Whether the page holds text that a person typed. */

type Field = HTMLInputElement | HTMLTextAreaElement;

const fields = new Set<Field>();

document.addEventListener('input', ({ target }) => {
  for (const field of fields) if (!field.isConnected) fields.delete(field);
  const isField = target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
  if (isField) fields.add(target);
});

/** A field that was typed in is still on the page and is not empty. */
export function holdsTyped(): boolean {
  return [...fields].some((field) => field.isConnected && field.value !== '');
}

/** The mark of a window that shows a secret. */
export const secretMark = { 'data-secret': '' } as const;

export function showsSecret(): boolean {
  return document.querySelector('[data-secret]') !== null;
}
