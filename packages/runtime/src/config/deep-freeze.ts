// A finished config never changes: frozen all the way down, in the types and at run time.
import type { Secret } from '../secret.ts';

export type DeepReadonly<T> = T extends Secret
  ? T
  : T extends readonly unknown[] | object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

export const deepFreeze = <T>(value: T): DeepReadonly<T> => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value as DeepReadonly<T>;
};
