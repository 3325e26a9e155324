// Turns errors of a config schema and of checks between keys into one ConfigProblem with a readable message.
import { type ErrorCode, Fault, type FaultValues, nearestWord } from '@tunnel/errors';
import { maskText } from '@tunnel/runtime';
import type * as z from 'zod';
import { type ConfigPath, findLayer, type Layer, pathText, type Tree, valueAt } from './layer.ts';
import { isConcealedAt, keysAt, valueKeys } from './schema-walk.ts';

type ConfigProblemCode = Extract<
  ErrorCode,
  'CONFIG_FILE_UNREADABLE' | 'CONFIG_SYNTAX' | 'CONFIG_UNKNOWN_KEY' | 'CONFIG_MISSING_VALUE' | 'CONFIG_WRONG_VALUE'
>;

/** A fault in the configuration. The class tells callers that a file or a variable is wrong, rather than the program. */
export class ConfigProblem extends Fault {
  declare readonly code: ConfigProblemCode;

  constructor(code: ConfigProblemCode, values: FaultValues) {
    super(code, values);
    this.name = 'ConfigProblem';
  }
}

export interface ConfigSource {
  readonly schema: z.ZodType;
  readonly layers: readonly Layer[];
  readonly merged: Tree;
}

/** A mistake that the schema of a single key cannot detect, found after the schema has accepted the config. */
export interface Finding {
  readonly path: ConfigPath;
  readonly expected: string;
  /** Description of the wrong value. Default: a description of the value at `path`. */
  readonly got?: string;
}

const MOST_SHOWN_CHARACTERS = 60;

/**
 * Makes a ConfigProblem from the most helpful issue. Unknown keys come first: a misspelled key also causes a missing key, and the
 * misspelled name is more helpful. Other issues are sorted by line.
 */
export const refuseIssues = (source: ConfigSource, issues: readonly z.core.$ZodIssue[]): ConfigProblem => {
  const found = issues.map((issue) => {
    const unknown = issue.code === 'unrecognized_keys' ? (issue.keys[0] ?? '') : undefined;
    const path = [...issue.path, ...(unknown === undefined ? [] : [unknown])] as ConfigPath;
    return { issue, path, unknown: unknown !== undefined, line: lineOf(source, path) };
  });
  const [first] = found.sort((a, b) => Number(b.unknown) - Number(a.unknown) || a.line - b.line);
  if (first === undefined) throw new Error('a refusal needs an issue');
  return first.unknown ? refuseUnknownKey(source, first.path) : refuseValue(source, first.path, first.issue);
};

export const refuseFinding = (source: ConfigSource, { path, expected, got }: Finding): ConfigProblem =>
  wrongValue(source, path, {
    expected,
    got: got ?? describeValue(valueAt(source.merged, path), isConcealedAt(source.schema, path)),
  });

const wrongValue = (source: ConfigSource, path: ConfigPath, words: { expected: string; got: string }): ConfigProblem =>
  new ConfigProblem(words.got === NOTHING ? 'CONFIG_MISSING_VALUE' : 'CONFIG_WRONG_VALUE', {
    where: whereIs(source, path),
    key: pathText(path),
    ...words,
  });

/** The description of a value that is absent. */
const NOTHING = 'nothing';

const refuseUnknownKey = (source: ConfigSource, path: ConfigPath): ConfigProblem =>
  new ConfigProblem('CONFIG_UNKNOWN_KEY', {
    where: whereIs(source, path),
    key: pathText(path),
    suggestion: suggestionFor(source.schema, path),
  });

const suggestionFor = (schema: z.ZodType, path: ConfigPath): string => {
  const name = String(path.at(-1));
  const siblings = keysAt(schema, path.slice(0, -1));
  const near = nearestWord(name, siblings);
  if (near !== undefined) return `; did you mean \`${near}\`?`;
  const elsewhere = valueKeys(schema).find((key) => key.endsWith(`.${name}`));
  if (elsewhere !== undefined) return `; did you mean \`${elsewhere}\`?`;
  return `; known here: ${siblings.join(', ')}`;
};

const refuseValue = (source: ConfigSource, path: ConfigPath, issue: z.core.$ZodIssue): ConfigProblem => {
  const concealed = isConcealedAt(source.schema, path);
  // For a wrong name in a table with free names, the wrong value is the name.
  const value = issue.code === 'invalid_key' ? path.at(-1) : valueAt(source.merged, path);
  return wrongValue(source, path, { expected: issue.message, got: describeValue(value, concealed) });
};

const lineOf = (source: ConfigSource, path: ConfigPath): number =>
  findLayer(source.layers, source.merged, path)?.line(path) ?? 0;

const whereIs = (source: ConfigSource, path: ConfigPath): string =>
  (findLayer(source.layers, source.merged, path) ?? source.layers.at(-1))?.where(path) ?? 'configuration';

/**
 * Describes a value in words. For a secret, only the type is shown. Contents of tables and lists are not shown, because they may be
 * secrets.
 */
export const describeValue = (value: unknown, concealed: boolean): string => {
  if (value === undefined || value === null) return NOTHING;
  if (value === '') return 'an empty string';
  if (value instanceof Date) return 'a date';
  if (Array.isArray(value)) return describeList(value);
  if (typeof value === 'object') return 'a table';
  if (concealed) return `a ${typeof value}`;
  if (typeof value === 'number') return String(value);
  if (typeof value !== 'string') return JSON.stringify(value);
  const shown = maskText(value);
  return JSON.stringify(shown.length > MOST_SHOWN_CHARACTERS ? `${shown.slice(0, MOST_SHOWN_CHARACTERS)}…` : shown);
};

const describeList = (list: readonly unknown[]): string =>
  list.length <= 4 && list.every((item) => typeof item === 'number')
    ? JSON.stringify(list)
    : `a list of ${list.length}`;
