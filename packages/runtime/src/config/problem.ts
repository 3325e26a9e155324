// The one refusal of configuration. Apps turn it into their own error by `code` and `values`.

// The same words as the error catalogue, which this package may not import; problem.test.ts proves them equal.
const TEXTS = {
  CONFIG_FILE_UNREADABLE: 'cannot read {file}: {reason}',
  CONFIG_SYNTAX: '{file}:{line}: {reason}',
  CONFIG_UNKNOWN_KEY: '{where}: unknown key `{key}`{suggestion}',
  CONFIG_WRONG_VALUE: '{where}: `{key}` must be {expected}, got {got}',
  CONFIG_NOT_IN_VERSION: '{where}: `{key}` = {got} is not in this version',
} as const;

export type ConfigProblemCode = keyof typeof TEXTS;

export const CONFIG_PROBLEM_CODES = Object.keys(TEXTS) as ConfigProblemCode[];

export type ConfigProblemValues = Readonly<Record<string, string | number>>;

export class ConfigProblem extends Error {
  readonly code: ConfigProblemCode;
  readonly values: ConfigProblemValues;

  constructor(code: ConfigProblemCode, values: ConfigProblemValues) {
    super(TEXTS[code].replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole)));
    this.name = 'ConfigProblem';
    this.code = code;
    this.values = values;
  }
}
