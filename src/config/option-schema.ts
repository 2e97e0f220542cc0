/** The forms of options as the schema library checks them, made of their rows (options.ts). */
import { z } from 'zod';
import { defaultText, type Form, type Kind, type Option, type Options } from './options.ts';
import {
  durationPattern,
  readDuration,
  readSize,
  readSpan,
  sizePattern,
  sizeText,
  spanPattern,
  spanText,
} from './quantity.ts';

/** A value may be a reference before it is resolved: editors see the text as it stands in the file. */
export const orReference = '|\\$\\{';

/** The message of a planned value. */
export const notYet = 'is not available yet';

const dayMs = 86_400_000;
const maxDurationMs = dayMs;
const maxSpanMs = 3660 * dayMs;

/** Goes into a header as it is. A line break there would be a header of its own. */
export const headerText = z
  .string()
  .min(1, 'is empty')
  // oxlint-disable-next-line eslint/no-control-regex
  .regex(
    /^[\t\x20-\x7e\x80-\xff]*$/,
    'contains a line break or another character that headers cannot contain',
  );

type ValueOf<O> = O extends { readonly kind: Kind<infer T> } ? T : never;
type ShapeOf<R extends Options> = {
  [O in R[keyof R] as O['key']]: z.ZodOptional<z.ZodType<ValueOf<O>>>;
};

/** The form of a section: each option by its key, all of them optional, no others. */
export function rowsForm<R extends Options>(options: R) {
  return z.strictObject(shapeOf<ShapeOf<R>>(Object.values(options)));
}

/** Typed by the caller, whose type follows from the rows. */
function shapeOf<S>(options: readonly Option[]): S {
  const entries: readonly (readonly unknown[])[] = options.map((each) => [each.key, formOf(each)]);
  return Object.fromEntries(entries);
}

function formOf(option: Option): z.ZodType {
  const usual = defaultText(option);
  const about = usual === undefined ? option.about : `${option.about} Default: ${usual}.`;
  return valueForm(option.kind.form).optional().describe(about);
}

/** Checks and reads a value as it is written. */
function valueForm(form: Form): z.ZodType {
  switch (form.is) {
    case 'duration':
      return durationForm(form);
    case 'span':
      return spanForm(form.min);
    case 'size':
      return sizeForm(form);
    case 'whole':
      return z
        .number()
        .int('must be a whole number')
        .min(form.min, `must be at least ${form.min}`)
        .max(form.max, `must be at most ${form.max}`);
    case 'share':
      return z.number().min(0, 'must be 0 to 1').max(1, 'must be 0 to 1');
    case 'switch':
      return z.boolean();
    case 'choice':
      return choiceForm(form);
    case 'text':
      return form.pattern === undefined
        ? z.string().min(1, 'is empty')
        : z.string().regex(form.pattern, form.message);
    case 'list':
      return z.array(z.string().regex(form.pattern, form.message));
    default:
      return form satisfies never;
  }
}

type FormOf<K extends Form['is']> = Extract<Form, { readonly is: K }>;

function choiceForm({ of, planned = [] }: FormOf<'choice'>): z.ZodType {
  // The message of a planned value says so instead of calling it wrong.
  return z.enum(of, {
    error: ({ input }) =>
      typeof input === 'string' && planned.some((name) => input.split(':')[0] === name)
        ? notYet
        : undefined,
  });
}

function durationForm({ min, never }: FormOf<'duration'>): z.ZodType {
  const wrong =
    never === undefined
      ? 'is not a duration (500ms, 2s, 30m, 1h)'
      : 'is neither never nor a duration (500ms, 2s, 30m, 1h)';
  return z
    .string({ error: ({ input }) => (typeof input === 'number' ? unitMissing : undefined) })
    .meta({
      pattern: `${never === undefined ? '' : '^never$|'}${durationPattern}${orReference}`,
      examples: never === undefined ? ['2s', '500ms', '30m'] : ['15s', 'never'],
    })
    .transform((text, context) => {
      if (text === 'never' && never !== undefined) return never;
      const ms = readDuration(text);
      if (ms !== undefined && ms >= min && ms <= maxDurationMs) return ms;
      context.addIssue({
        code: 'custom',
        message: ms === undefined ? wrong : `must be ${min}ms to 24h`,
      });
      return z.NEVER;
    });
}

/** In quotes it would be none either. */
const unitMissing = 'is a number without a unit; write a duration (500ms, 2s, 30m, 1h)';

function spanForm(min: number): z.ZodType {
  return z
    .string()
    .meta({ pattern: `${spanPattern}${orReference}`, examples: ['90d', '26w', 'forever'] })
    .transform((text, context) => {
      const ms = readSpan(text);
      if (ms === Number.POSITIVE_INFINITY) return ms;
      if (ms !== undefined && ms >= min && ms <= maxSpanMs) return ms;
      const message =
        ms === undefined
          ? 'is not a span (90d, 26w, forever)'
          : `must be ${spanText(min)} to ${spanText(maxSpanMs)}, or forever`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    });
}

function sizeForm({ min, max, examples }: FormOf<'size'>): z.ZodType {
  return z
    .union([
      z.string().meta({ pattern: sizePattern + orReference, examples }),
      z.number().int().meta({ description: 'Bytes' }),
    ])
    .transform((value, context) => {
      const bytes = typeof value === 'number' ? value : readSize(value);
      if (bytes !== undefined && bytes >= min && bytes <= max) return bytes;
      const message =
        bytes === undefined
          ? `is not a size (${examples.join(', ')}, bytes)`
          : `must be ${sizeText(min)} to ${sizeText(max)}`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    });
}
