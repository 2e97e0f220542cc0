/** How long shared counters keep what a call holds when nobody renews it (Q2). */
export const leaseMs = 30_000;
export const renewEveryMs = 10_000;

/**
 * Money is held for longer than a lease: a call whose gateway died is settled from the book first (F81),
 * and what it cost takes the place of what it held.
 */
export const moneyGraceMs = 120_000;
