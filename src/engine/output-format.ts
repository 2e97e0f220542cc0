/** Reads `response_format`. */
import { invalid } from './engine-error.ts';
import { isObject, member, type Json, type JsonObject } from './json.ts';

/** A form that the whole answer has. */
export interface OutputFormat {
  /** Absent = any JSON object. */
  readonly schema?: Json;
  /** Where the schema stands in the request. */
  readonly path: string;
}

/** @throws EngineError 400 that names the member. */
export function readOutputFormat(body: JsonObject): OutputFormat | undefined {
  const value = member(body, 'response_format');
  if (value === undefined) return undefined;
  const path = 'response_format';
  if (!isObject(value)) throw invalid('"response_format" must be an object.', path, 'invalid_type');
  switch (value['type']) {
    case 'text':
      return undefined;
    case 'json_object': {
      // llama.cpp and others take a schema here too.
      const schema = member(value, 'schema');
      return schema === undefined ? { path } : { schema, path: `${path}.schema` };
    }
    case 'json_schema': {
      const described = member(value, 'json_schema');
      const schema = isObject(described) ? member(described, 'schema') : undefined;
      if (!isObject(described)) {
        throw invalid('"json_schema" must be an object.', `${path}.json_schema`);
      }
      return { schema: schema ?? {}, path: `${path}.json_schema.schema` };
    }
    default:
      throw invalid('A response format is text, json_object or json_schema.', `${path}.type`);
  }
}
