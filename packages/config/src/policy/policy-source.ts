// A policy as written by a user: a policy file, the key `policy` of a tunnel in config.yml, or a value from a program. Knows the line of
// every key, resolves paths of files named in the policy, and words the errors. The rules for valid policies are in other modules.
import { dirname } from 'node:path';
import { inspect } from 'node:util';
import type * as z from 'zod';
import { readConfigText } from '../layers/file-layers.ts';
import { type ConfigPath, pathText, valueAt } from '../layers/layer.ts';
import { pathFrom } from '../layers/path-from.ts';
import { ConfigProblem, describeValue } from '../layers/problem.ts';
import { readYaml } from '../layers/yaml-layer.ts';

interface PolicyOrigin {
  readonly value: unknown;
  /** File that contains the policy. Null if the policy is not from a file and therefore has no lines. */
  readonly file: string | null;
  readonly line: (path: ConfigPath) => number;
  /** Returns the name of a key of the policy for error messages. */
  readonly key: (path: ConfigPath) => string;
  /** Name of the origin, shown in error messages instead of file and line if `file` is null. */
  readonly name: string;
  /** Folder against which relative paths in the policy are resolved. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
}

/** A policy with its origin. The policy may contain secrets, so printing or serializing the object reveals no contents. */
export class PolicySource {
  readonly #origin: PolicyOrigin;

  constructor(origin: PolicyOrigin) {
    this.#origin = origin;
  }

  get value(): unknown {
    return this.#origin.value;
  }

  get env(): NodeJS.ProcessEnv {
    return this.#origin.env;
  }

  /** Resolves the path of a file named in the policy. */
  pathOf(path: string): string {
    return pathFrom(this.#origin.folder, path, this.#origin.home);
  }

  /**
   * Makes an error for the value at a path. `got` describes the wrong value. By default, only the type of the value is shown, because the
   * value may be a secret.
   */
  refuse(path: ConfigPath, expected: string, got?: string): ConfigProblem {
    return new ConfigProblem('CONFIG_WRONG_VALUE', {
      where: this.#where(path),
      // The policy as a whole has an empty path, so the message calls it `policy`.
      key: this.#origin.key(path) || 'policy',
      expected,
      got: got ?? describeValue(valueAt(this.value, path), true),
    });
  }

  /** Returns the file and line of a value, for errors with different wording. Returns null if the policy is not from a file. */
  positionOf(path: ConfigPath): { readonly file: string; readonly line: number } | null {
    const { file, line } = this.#origin;
    return file === null ? null : { file, line: line(path) };
  }

  /**
   * Makes a ConfigProblem from the most helpful issue. Unknown keys come first, because a misspelled key also causes a missing key. Other
   * issues are sorted by line. `isShown` tells whether the message may contain the value at a path.
   */
  refuseIssues(issues: readonly z.core.$ZodIssue[], isShown: (path: ConfigPath) => boolean): ConfigProblem {
    const found = issues.flatMap(nearestIssues).map((issue) => {
      const unknown = issue.code === 'unrecognized_keys' ? (issue.keys[0] ?? '') : undefined;
      const path = [...issue.path, ...(unknown === undefined ? [] : [unknown])] as ConfigPath;
      return { issue, path, isUnknown: unknown !== undefined, line: this.#origin.line(path) };
    });
    const [first] = found.sort((a, b) => Number(b.isUnknown) - Number(a.isUnknown) || a.line - b.line);
    if (first === undefined) throw new Error('a refusal needs an issue');
    if (first.isUnknown) return this.#refuseUnknown(first.path, first.issue.message);
    const path = this.#written(first.path);
    return this.refuse(path, first.issue.message, describeValue(valueAt(this.value, path), !isShown(path)));
  }

  /**
   * Translates a path of the checked policy to a path of the written policy. A single value may replace a list with one entry; an index
   * into such a list refers to the single value.
   */
  #written(path: ConfigPath): ConfigPath {
    const isOfNoList = typeof path.at(-1) === 'number' && !Array.isArray(valueAt(this.value, path.slice(0, -1)));
    return isOfNoList ? path.slice(0, -1) : path;
  }

  /** Makes an error for an unknown key. `message` comes from the schema: `unknown key …; did you mean …?` */
  #refuseUnknown(path: ConfigPath, message: string): ConfigProblem {
    const [, help = ''] = /^unknown key[^;]*(; .*)$/.exec(message) ?? [];
    return new ConfigProblem('CONFIG_UNKNOWN_KEY', {
      where: this.#where(path),
      key: this.#origin.key([...path.slice(0, -1), shownKey(path.at(-1))]),
      suggestion: help,
    });
  }

  #where(path: ConfigPath): string {
    const { file, line, name } = this.#origin;
    return file === null ? name : `${file}:${line(path)}`;
  }

  toJSON(): string {
    return '[policy]';
  }

  [inspect.custom](): string {
    return '[policy]';
  }
}

/** Hides keys that do not look like names: in `{ token:abc }`, the whole text including the token is a key. */
const shownKey = (key: string | number | undefined): string => (/^[\w.-]{1,40}$/.test(String(key)) ? String(key) : '…');

/**
 * If all alternatives of a union fail, picks the issues of the alternative that the author most likely meant: not an alternative of
 * another type, and the alternative with the fewest issues.
 */
const nearestIssues = (issue: z.core.$ZodIssue): z.core.$ZodIssue[] => {
  if (issue.code !== 'invalid_union') return [issue];
  const isOfKind = (branch: readonly z.core.$ZodIssue[]): boolean =>
    branch.length > 0 && !branch.some(({ code, path }) => code === 'invalid_type' && path.length === 0);
  const [nearest] = issue.errors.filter(isOfKind).sort((a, b) => a.length - b.length);
  if (nearest === undefined) return [issue];
  return nearest.flatMap((inner) => nearestIssues({ ...inner, path: [...issue.path, ...inner.path] }));
};

interface PolicyFileOptions {
  readonly file: string;
  /** Name of the file in error messages. Default: the path of the file. */
  readonly shown?: string;
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
}

/** Reads a policy file. Throws a ConfigProblem if the file cannot be read or is not valid YAML. */
export const readPolicySource = ({ file, shown = file, env, home }: PolicyFileOptions): PolicySource => {
  const { value, line } = readYaml(shown, readPolicyText(file, shown));
  return new PolicySource({ value, file: shown, line, key: pathText, name: shown, folder: dirname(file), env, home });
};

const readPolicyText = (file: string, shown: string): string => {
  try {
    return readConfigText(file);
  } catch (error) {
    if (!(error instanceof ConfigProblem)) throw error;
    throw new ConfigProblem(error.code, { ...error.values, file: shown });
  }
};
