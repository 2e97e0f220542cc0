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
      events: z
        .array(z.enum(['budget', 'credential', 'target', 'store', 'overload']))
        .min(1, 'names nothing')
        .optional()
        .describe('Which events go there. Default all.'),
    }),
  )
  .max(10, 'has more than 10 entries')
  .nullish()
  .describe(
    'Who is told of budgets that are used up and of what fails and comes back (docs/webhooks.md).',
  );
