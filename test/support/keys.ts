/** The credentials of a test gateway. */
export const clientKey = 'test-key-0123456789abcdef';
export const adminToken = 'test-admin-0123456789abcdef';
