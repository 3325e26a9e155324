// Reading a schema: which keys it knows, what stands at a path. For suggestions, variables and the documentation test.
import * as z from 'zod';
import type { ConfigPath } from './layer.ts';
import { type KeyMeta, keyMetaOf } from './values.ts';

/** The schema itself under defaults, optionals and transforms. */
const unwrap = (schema: z.core.$ZodType): z.core.$ZodType => {
  if (
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodReadonly
  ) {
    return unwrap(schema.def.innerType);
  }
  if (schema instanceof z.ZodLazy) return unwrap(schema.def.getter());
  if (!(schema instanceof z.ZodPipe)) return schema;
  // What comes before a check says what is written; a step that only prepares says nothing.
  return unwrap(schema.def.in instanceof z.ZodTransform ? schema.def.out : schema.def.in);
};

/** All that it may be. */
const alternatives = (schema: z.core.$ZodType): z.core.$ZodType[] => {
  const inner = unwrap(schema);
  return inner instanceof z.ZodUnion ? inner.def.options.flatMap(alternatives) : [inner];
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

const schemasAt = (schema: z.core.$ZodType, path: ConfigPath): z.core.$ZodType[] =>
  path.reduce<z.core.$ZodType[]>(
    (at, key) =>
      at.flatMap((one) => {
        const next = child(one, key);
        return next === undefined ? [] : alternatives(next);
      }),
    alternatives(schema),
  );

export const metaAt = (schema: z.core.$ZodType, path: ConfigPath): KeyMeta =>
  schemasAt(schema, path).reduce<KeyMeta>((meta, found) => ({ ...meta, ...keyMetaOf(found) }), {});

/** True for a key that holds a value of its own, not a table of further keys. */
export const isValueKey = (schema: z.core.$ZodType, path: ConfigPath): boolean => {
  const found = schemasAt(schema, path);
  return found.length > 0 && !found.some(isTableSchema);
};

/** The names that may stand in the table at a path. */
export const keysAt = (schema: z.core.$ZodType, path: ConfigPath): string[] => [
  ...new Set(
    schemasAt(schema, path).flatMap((found) => (found instanceof z.ZodObject ? Object.keys(shapeOf(found)) : [])),
  ),
];

/** Every key that holds a value. `*` stands for a name of one's own, `[]` for an entry of a list of tables. */
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
