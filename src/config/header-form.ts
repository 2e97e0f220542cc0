/** The form of texts that become header values. */
import { z } from 'zod';

/** Goes into a header as it is. A line break there would be a header of its own. */
export const headerText = z
  .string()
  .min(1, 'is empty')
  // oxlint-disable-next-line eslint/no-control-regex
  .regex(
    /^[\t\x20-\x7e\x80-\xff]*$/,
    'holds a line break or another character no header can carry',
  );
