/** How long a page may take to show something, in ms: a machine may be busy with other tests. */
export const patienceMs = 60_000;
