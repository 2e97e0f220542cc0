/** How long shared counters keep a place or tokens of a call that its gateway does not renew. */
export const leaseMs = 30_000;
export const renewEveryMs = 10_000;
