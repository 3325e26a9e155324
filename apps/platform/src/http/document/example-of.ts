// An example of a value that a schema describes: the schema's own where it has one, else one of its type.
import type { Schema } from './document-types.ts';

const OF_FORMAT: Readonly<Record<string, string>> = {
  'date-time': '2030-01-31T12:00:00.000Z',
  date: '2030-01-31',
  email: 'ada@example.com',
  uuid: '0b6f3a54-6a0e-4f0e-9a53-0d7c3a1f5b11',
  uri: 'https://example.com/',
};

/** Schemas that hold themselves end here. */
const DEEPEST = 12;

const REFERENCE = '#/components/schemas/';

export const nameOfReference = (reference: string): string => reference.slice(REFERENCE.length);

export const exampleOf = (schema: Schema, schemas: Readonly<Record<string, Schema>>, depth = 0): unknown => {
  if (depth > DEEPEST) return null;
  const inner = (part: Schema): unknown => exampleOf(part, schemas, depth + 1);
  if (schema.$ref !== undefined) return inner(schemas[nameOfReference(schema.$ref)] ?? {});
  const given = [schema.examples?.[0], schema.example, schema.default, schema.const, schema.enum?.[0]];
  const own = given.find((value) => value !== undefined);
  if (own !== undefined) return own;
  if (schema.allOf !== undefined) return Object.assign({}, ...schema.allOf.map(inner));
  const first = (schema.anyOf ?? schema.oneOf)?.[0];
  return first === undefined ? ofType(schema, inner) : inner(first);
};

const ofType = (schema: Schema, inner: (part: Schema) => unknown): unknown => {
  const [type] = [schema.type ?? 'object'].flat();
  if (type === 'string') return OF_FORMAT[schema.format ?? ''] ?? 'text';
  if (type === 'integer' || type === 'number') return schema.minimum ?? 0;
  if (type === 'boolean') return true;
  if (type === 'null') return null;
  if (type === 'array') return schema.items === undefined ? [] : [inner(schema.items)];
  return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, part]) => [name, inner(part)]));
};
