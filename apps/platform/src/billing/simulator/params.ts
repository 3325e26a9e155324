// Which parameters a call takes. As strict as the processor: what it does not know, it refuses by name.
import * as z from 'zod';
import type { FormTree } from './form-params.ts';
import { badRequest, type SimError } from './sim-error.ts';

export const text = (most = 5000) => z.string().min(1).max(most);
export const whole = (from: number, to: number) =>
  z
    .string()
    .regex(/^-?\d{1,15}$/)
    .transform(Number)
    .pipe(z.int().min(from).max(to));
export const flag = () => z.enum(['true', 'false']).transform((value) => value === 'true');
export const decimal = () => z.string().regex(/^\d{1,15}(\.\d{1,12})?$/);
export const metadata = () => z.record(z.string().max(40), z.string().max(500)).default({});
export const none = z.strictObject({});

/** Of every list: newest first, up to `limit`, after the object that was seen last. */
export const paging = { limit: whole(1, 100).default(10), starting_after: text().optional() };

export const checkParams = <S extends z.ZodType>(schema: S, tree: FormTree): z.output<S> => {
  const result = schema.safeParse({ ...tree });
  if (result.success) return result.data;
  throw refusalOf(result.error.issues, tree);
};

/** Names that are unknown first: a misspelt one is also a missing one. */
const refusalOf = (issues: readonly z.core.$ZodIssue[], tree: FormTree): SimError => {
  const unknown = issues.find((issue) => issue.code === 'unrecognized_keys');
  if (unknown?.code === 'unrecognized_keys') {
    const param = nameOf([...unknown.path, unknown.keys[0] ?? '']);
    return badRequest(`Received unknown parameter: ${param}`, { code: 'parameter_unknown', param });
  }
  const [first] = issues;
  const param = nameOf(first?.path ?? []);
  if (valueAt(tree, first?.path ?? []) === undefined) {
    return badRequest(`Missing required param: ${param}.`, { code: 'parameter_missing', param });
  }
  return badRequest(`Invalid ${param}: ${first?.message ?? 'it cannot be read'}`, { param });
};

const nameOf = ([head = '', ...rest]: readonly PropertyKey[]): string =>
  `${String(head)}${rest.map((part) => `[${String(part)}]`).join('')}`;

const valueAt = (tree: FormTree, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (value, part) => (typeof value === 'object' && value !== null ? Reflect.get(value, part) : undefined),
    tree,
  );
