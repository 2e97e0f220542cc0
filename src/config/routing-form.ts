/** The forms of `gateway.yaml` that say which target is asked, and with which credential (docs/routing.md). */
import { z } from 'zod';
import { orders } from '../core/provider.ts';
import { headerText } from './header-form.ts';
import { duration } from './time-form.ts';

/** `order` of a name of `models:`. */
export const orderForm = z
  .enum(orders)
  .optional()
  .describe(
    'listed (default): the first that can; weighted: by share; least-busy: the one with the fewest running calls, by weight; fastest: the one that begins to answer soonest; cheapest: by price.',
  );

export const affinityForm = z
  .boolean()
  .optional()
  .describe(
    'Whether calls of one conversation go to the same target and credential while they are healthy, so that caches stay warm. Default true.',
  );

/** `retry:` of the whole file or of one name. */
export const retryForm = z
  .strictObject({
    after_sent: z
      .boolean()
      .optional()
      .describe(
        'Whether a request that was sent and not answered is asked again: the vendor may bill it twice. Default true.',
      ),
    context_overflow: z
      .boolean()
      .optional()
      .describe(
        'Whether a prompt that is too long for one target is sent to the other targets. Default false.',
      ),
  })
  .nullish();

/** `hedge:` of one name. */
export const hedgeForm = z
  .strictObject({
    after: duration('How long the first target has to bring its first event.'),
  })
  .refine(({ after }) => after !== undefined, 'needs after, e.g. { after: 800ms }')
  .nullish()
  .describe(
    'Sends a second request, to the next target, when the first brings nothing in that time; the sooner answer is taken and both may be billed. Default: never.',
  );

/** `api_key` of a provider: one key, or several that share the calls. */
export const apiKeyForm = z
  .union([headerText, z.array(headerText).min(1, 'names no key')])
  .optional()
  .describe(
    "The key, or a list of several, which are called key-1, key-2. Best as references: ${NAME} from the environment or ${file:/path}. Known vendors: the vendor's customary variable when absent.",
  );

export const credentialsForm = z
  .record(
    z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'is letters, digits, . _ and -, at most 63'),
    headerText,
  )
  .optional()
  .describe('Several keys by name, instead of api_key. Each has its own waits and its own state.');
