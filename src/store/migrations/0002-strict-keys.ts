/** Keys for which loss in translation is an error. Those that exist keep noting it. */
export const strictKeys = `
ALTER TABLE keys ADD COLUMN strict INTEGER NOT NULL DEFAULT 0;
`;
