// A policy as somebody wrote it: a file of its own, the key of a tunnel in config.yml, or a value of a program. It knows the line of each of its
// keys and where the files lead that it names, and puts into words what is wrong with it. What a policy may say is decided elsewhere.
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
  /** null: it stands in no file, and has no lines. */
  readonly file: string | null;
  readonly line: (path: ConfigPath) => number;
  /** For people: what a key of it is called. */
  readonly key: (path: ConfigPath) => string;
  /** Instead of file and line. */
  readonly name: string;
  /** The folder that files are seen from which it names. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
}

/** It may hold secrets: nothing of it is shown by accident. */
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

  /** Where a file is that it names. */
  pathOf(path: string): string {
    return pathFrom(this.#origin.folder, path, this.#origin.home);
  }

  /** `got` left out: the kind of what stands there. Never its text: it may be a secret. */
  refuse(path: ConfigPath, expected: string, got?: string): ConfigProblem {
    return new ConfigProblem('CONFIG_WRONG_VALUE', {
      where: this.#where(path),
      // Of the whole there is no key.
      key: this.#origin.key(path) || 'policy',
      expected,
      got: got ?? describeValue(valueAt(this.value, path), true),
    });
  }

  /** For a refusal in a sentence of its own; null: it stands in no file. */
  positionOf(path: ConfigPath): { readonly file: string; readonly line: number } | null {
    const { file, line } = this.#origin;
    return file === null ? null : { file, line: line(path) };
  }

  /** Unknown keys first: a misspelt one is also a missing one. Then from the top down. `isShown`: whether the value at a path may be repeated. */
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

  /** One value may stand for a list of it: then the first of the list is that value. */
  #written(path: ConfigPath): ConfigPath {
    const isOfNoList = typeof path.at(-1) === 'number' && !Array.isArray(valueAt(this.value, path.slice(0, -1)));
    return isOfNoList ? path.slice(0, -1) : path;
  }

  /** `message` of a schema that knows its keys: `unknown key …; did you mean …?` */
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

/** What is no name of anything is not repeated: in `{ token:abc }` it is the token. */
const shownKey = (key: string | number | undefined): string => (/^[\w.-]{1,40}$/.test(String(key)) ? String(key) : '…');

/** Of alternatives that all fail, what the one has against it that was most likely meant: not one of another kind, and with the fewest faults. */
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
  /** As it is called in refusals; its path unless told. */
  readonly shown?: string;
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
}

/** Throws a ConfigProblem for a file that cannot be read, or is no YAML. */
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
