/** Which credential a try was made with, where the provider has several. */
export const attemptCredential = 'ALTER TABLE attempts ADD COLUMN credential TEXT;';
