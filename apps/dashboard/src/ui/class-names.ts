// Joins class names, leaving out false, null, undefined and empty values.

export const classNames = (...parts: readonly (string | false | null | undefined)[]): string =>
  parts.filter((part) => typeof part === 'string' && part !== '').join(' ');
