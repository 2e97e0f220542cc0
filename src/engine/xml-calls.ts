/**
 * The form of calls that Qwen's coders and their likes write, with one element a parameter:
 *
 *   <function=NAME> <parameter=KEY> value </parameter> … </function>
 *
 * Values are text; the tool's schema tells which of them are JSON.
 */
import { isArray, isObject, tryParse, type JsonObject } from './json.ts';

/** A template that holds it teaches this form. */
export const xmlCallMark = '<function=';

export interface XmlCall {
  readonly name: string;
  /** JSON text; numbers keep the digits that the model wrote. */
  readonly argumentsJson: string;
}

const opening = /^<function=([^>\s]+)>/u;
const closing = '</function>';
/** A value may hold the closing tag itself: only what begins or ends an element closes one. */
const parameterForm = /\s*<parameter=([^>\n]+)>\n?([^]*?)\n?<\/parameter>\s*(?=<parameter=|$)/uy;

/** @param schemaOf the parameters of an offered tool. */
export function readXmlCall(
  text: string,
  schemaOf: (name: string) => JsonObject | undefined,
): XmlCall | undefined {
  const call = text.trim();
  const [tag = '', name] = opening.exec(call) ?? [];
  if (name === undefined) return undefined;
  const body = call.slice(tag.length, call.endsWith(closing) ? -closing.length : undefined);
  const properties = schemaOf(name)?.['properties'];
  const members = new Map<string, string>();
  parameterForm.lastIndex = 0;
  let at = 0;
  for (let found = parameterForm.exec(body); found !== null; found = parameterForm.exec(body)) {
    const [whole, key = '', value = ''] = found;
    at += whole.length;
    const schema = isObject(properties) ? properties[key] : undefined;
    members.set(key, isText(schema, value) ? JSON.stringify(value) : value.trim());
  }
  if (body.slice(at).trim() !== '') return undefined;
  const pairs = [...members].map(([key, value]) => `${JSON.stringify(key)}: ${value}`);
  return { name, argumentsJson: `{${pairs.join(', ')}}` };
}

/** Whether a value is a string and not the JSON that it may look like. */
function isText(schema: unknown, value: string): boolean {
  if (tryParse(value) === undefined || !isObject(schema)) return true;
  const { type, enum: choices } = schema;
  if (isArray(choices)) return choices.includes(value);
  const types = isArray(type) ? type : [type];
  if (value.trim() === 'null' && types.includes('null')) return false;
  const says = ['type', 'anyOf', 'oneOf', 'allOf', '$ref', 'const'].some((key) => key in schema);
  return !says || types.includes('string');
}
