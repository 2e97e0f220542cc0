/** The form of `webhooks:` in `gateway.yaml`. */
import { z } from 'zod';

export const webhooksForm = z
  .array(
    z.strictObject({
      url: z.string().min(1, 'is empty').describe('Where events are posted as JSON.'),
      secret: z
        .string()
        .min(16, 'must have at least 16 characters')
        .describe('Signs each event (x-gateway-signature). Best as a reference: ${NAME}.'),
    }),
  )
  .max(10, 'has more than 10 entries')
  .nullish()
  .describe('Who is told when a budget passes 50, 80 and 100 percent (docs/limits.md).');
