// Inspects a config schema: the keys of the schema, and the schema at a path. Used for suggestions, environment variables and the
// documentation test.
import { isConcealed } from '@tunnel/tunnel-spec/values';
import * as z from 'zod';
import type { ConfigPath } from './layer.ts';

/** Removes the wrappers of defaults, optionals and transforms from a schema. */
const unwrap = (schema: z.core.$ZodType): z.core.$ZodType => {
  if (
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodReadonly
  ) {
    return unwrap(schema.def.innerType);
  }
  return schema instanceof z.ZodPipe ? unwrap(schema.def.in) : schema;
};

const shapeOf = (schema: z.ZodObject): Record<string, z.core.$ZodType> => schema.def.shape;

const isTableSchema = (schema: z.core.$ZodType): boolean =>
  schema instanceof z.ZodObject || schema instanceof z.ZodRecord;

const child = (schema: z.core.$ZodType, key: string | number): z.core.$ZodType | undefined => {
  if (schema instanceof z.ZodObject) {
    const shape = shapeOf(schema);
    return typeof key === 'string' && Object.hasOwn(shape, key) ? shape[key] : undefined;
  }
  if (schema instanceof z.ZodRecord) {
    return z.safeParse(schema.def.keyType, key).success ? schema.def.valueType : undefined;
  }
  if (schema instanceof z.ZodArray) return schema.def.element;
  return schema instanceof z.ZodTuple ? schema.def.items[Number(key)] : undefined;
};

const schemaAt = (schema: z.core.$ZodType, path: ConfigPath): z.core.$ZodType | undefined =>
  path.reduce<z.core.$ZodType | undefined>((at, key) => {
    const next = at === undefined ? undefined : child(at, key);
    return next === undefined ? undefined : unwrap(next);
  }, unwrap(schema));

/** Whether the value at a path is secret and must not appear in error messages. */
export const isConcealedAt = (schema: z.core.$ZodType, path: ConfigPath): boolean => {
  const found = schemaAt(schema, path);
  return found !== undefined && isConcealed(found);
};

/** Whether a key holds a value, as opposed to a table of further keys. */
export const isValueKey = (schema: z.core.$ZodType, path: ConfigPath): boolean => {
  const found = schemaAt(schema, path);
  return found !== undefined && !isTableSchema(found);
};

/** Returns the keys allowed in the table at a path. */
export const keysAt = (schema: z.core.$ZodType, path: ConfigPath): string[] => {
  const found = schemaAt(schema, path);
  return found instanceof z.ZodObject ? Object.keys(shapeOf(found)) : [];
};

/** Lists every key that holds a value. `*` stands for a name chosen by the user, `[]` for an entry of a list of tables. */
export const valueKeys = (schema: z.core.$ZodType, prefix = ''): string[] => {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodObject) {
    return Object.entries(shapeOf(inner)).flatMap(([key, value]) =>
      valueKeys(value, prefix === '' ? key : `${prefix}.${key}`),
    );
  }
  if (inner instanceof z.ZodRecord) return valueKeys(inner.def.valueType, `${prefix}.*`);
  if (inner instanceof z.ZodArray && isTableSchema(unwrap(inner.def.element))) {
    return valueKeys(inner.def.element, `${prefix}[]`);
  }
  return [prefix];
};
