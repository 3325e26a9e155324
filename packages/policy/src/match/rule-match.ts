// Decides whether a rule applies to a request. A restricting rule matches if any reading of the path matches, every other rule only if all
// readings match. A failed match allocates only the request's readings.

import type { ActionName, Match } from '../policy.ts';
import type { PolicyRequest } from '../policy-step.ts';
import { byteText } from '../text/bytes.ts';
import { foldCase } from '../text/percent.ts';
import { isTakenFor } from './field-names.ts';
import { compileGlob, stepsOfGlob } from './glob.ts';
import { NetworkSet } from './network-set.ts';
import type { RequestReadings } from './path-readings.ts';

/** Rule actions that reject visitors or require something from them, such as a sign-in. */
const RESTRICTING: ReadonlySet<ActionName> = new Set<ActionName>([
  'deny',
  'respond',
  'redirect',
  'auth',
  'allow_addresses',
  'verify_webhook',
  'rate_limit',
  'max_body',
]);

export const restricts = (action: ActionName): boolean => RESTRICTING.has(action);

type Test = (text: string) => boolean;
type Asked = Pick<PolicyRequest, 'method' | 'address' | 'headers' | 'host' | 'authority'>;

export interface CompiledMatch {
  matches(request: Asked, readings: RequestReadings): boolean;
  /** Explains a failed match: `address`, `method`, `header`, `path`, or `not …` with the fields of the exception. */
  whyNot(request: Asked, readings: RequestReadings): string;
  /** For TCP and UDP, where only the address is known. The schema admits no other condition there. */
  matchesAddress(address: string): boolean;
}

export const compileMatch = (match: Match | undefined, isRestricting: boolean): CompiledMatch =>
  match === undefined ? EVERYTHING : new RuleMatch(new Conditions(match, isRestricting), isRestricting);

const EVERYTHING: CompiledMatch = {
  matches: () => true,
  whyNot: () => '',
  matchesAddress: () => true,
};

class RuleMatch implements CompiledMatch {
  readonly #conditions: Conditions;
  readonly #isRestricting: boolean;

  constructor(conditions: Conditions, isRestricting: boolean) {
    this.#conditions = conditions;
    this.#isRestricting = isRestricting;
  }

  matches(request: Asked, readings: RequestReadings): boolean {
    const conditions = this.#conditions;
    if (conditions.failing(request, readings) !== null) return false;
    if (!conditions.isAboutPath) return !conditions.isExcepted(request, readings, '', false);
    return this.#matchesPath(request, readings);
  }

  whyNot(request: Asked, readings: RequestReadings): string {
    const failing = this.#conditions.failing(request, readings);
    if (failing !== null) return failing;
    const { plain } = readings.readings;
    return this.#conditions.hasPath(plain, false) && this.#conditions.isExcepted(request, readings, plain, false)
      ? this.#conditions.exception
      : this.#conditions.fieldOfPath;
  }

  matchesAddress(address: string): boolean {
    return this.#conditions.matchesAddress(address);
  }

  #matchesPath(request: Asked, readings: RequestReadings): boolean {
    const all = readings.readings;
    const conditions = this.#conditions;
    const isSome = this.#isRestricting;
    const texts = 2 * (1 + all.others.length);
    if (all.isUnclear || !readings.spend(conditions.pathSteps * all.plain.length * texts)) return isSome;
    if (conditions.judge(request, readings, all.plain, false) === isSome) return isSome;
    for (const text of all.others) if (conditions.judge(request, readings, text, false) === isSome) return isSome;
    // Without upper-case characters in the path and in the globs, lower-case readings give the same result.
    if (!all.hasUpper && !conditions.hasUpper) return !isSome;
    for (const text of all.folded) if (conditions.judge(request, readings, text, true) === isSome) return isSome;
    return !isSome;
  }
}

/** Compiled globs for a path: tests for readings with case, and lower-case tests for lower-case readings. */
interface PathTests {
  readonly exact: readonly Test[];
  readonly folded: readonly Test[];
}

interface HeaderTest {
  /** Header field name in lower case. */
  readonly name: string;
  readonly wanted: boolean | readonly Test[];
  readonly steps: number;
}

const NONE: readonly never[] = [];

class Conditions {
  readonly #methods: ReadonlySet<string> | null;
  readonly #networks: NetworkSet | null;
  readonly #headers: readonly HeaderTest[];
  readonly #paths: PathTests | null;
  readonly #not: Conditions | null;
  /** True if doubt counts as a match: one matching value of a repeated header is enough. Inverted inside `not`. */
  readonly #isEager: boolean;
  readonly isAboutPath: boolean;
  readonly pathSteps: number;
  /** True if a path glob contains upper-case characters. */
  readonly hasUpper: boolean;
  readonly #match: Match;

  constructor(match: Match, isEager: boolean) {
    const { method, address, header, path, not } = match;
    this.#match = match;
    this.#isEager = isEager;
    this.#methods = method === undefined ? null : new Set(method);
    this.#networks = address === undefined ? null : new NetworkSet(address);
    this.#headers = header === undefined ? NONE : Object.entries(header).map((entry) => headerTest(...entry));
    this.#paths = path === undefined ? null : pathTests(path);
    this.#not = not === undefined ? null : new Conditions(not, !isEager);
    this.isAboutPath = path !== undefined || (this.#not?.isAboutPath ?? false);
    this.pathSteps = sum((path ?? []).map(stepsOfGlob)) + (this.#not?.pathSteps ?? 0);
    this.hasUpper = (path ?? []).some(hasCase) || (this.#not?.hasUpper ?? false);
  }

  /** Returns the first failing condition, apart from the path. Cheap conditions come first. */
  failing(request: Asked, readings: RequestReadings): 'method' | 'address' | 'header' | null {
    if (this.#methods !== null && !this.#hasMethod(this.#methods, request.method)) return 'method';
    if (this.#networks !== null && !this.#networks.has(request.address)) return 'address';
    for (const test of this.#headers) if (!this.#hasHeader(request, test, readings)) return 'header';
    return null;
  }

  /** Checks a single reading against path and `not`, so that the exception is decided per reading. */
  judge(request: Asked, readings: RequestReadings, text: string, isFolded: boolean): boolean {
    return this.hasPath(text, isFolded) && !this.isExcepted(request, readings, text, isFolded);
  }

  isExcepted(request: Asked, readings: RequestReadings, text: string, isFolded: boolean): boolean {
    const not = this.#not;
    if (not === null) return false;
    return not.failing(request, readings) === null && not.judge(request, readings, text, isFolded);
  }

  hasPath(text: string, isFolded: boolean): boolean {
    if (this.#paths === null) return true;
    for (const test of isFolded ? this.#paths.folded : this.#paths.exact) if (test(text)) return true;
    return false;
  }

  matchesAddress(address: string): boolean {
    if (this.#networks !== null && !this.#networks.has(address)) return false;
    return this.#not === null || !this.#not.matchesAddress(address);
  }

  get #fields(): readonly string[] {
    return ['address', 'method', 'header', 'path'].filter((field) => field in this.#match);
  }

  get exception(): string {
    return this.#not === null ? 'not' : `not ${this.#not.#fields.join(', ')}`;
  }

  /** The condition to report as failing if only some readings of the path matched. */
  get fieldOfPath(): string {
    return this.#paths === null ? this.exception : 'path';
  }

  /** Methods are case-sensitive, but a restricting rule for `POST` must also match `post`, because some services ignore case. */
  #hasMethod(methods: ReadonlySet<string>, method: string): boolean {
    if (methods.has(method)) return true;
    return this.#isEager && hasLower(method) && methods.has(method.toUpperCase());
  }

  /**
   * A service may pick any value of a repeated header, and may read `_` as `-`. A restricting match needs only one matching value, any
   * other match needs all of them.
   */
  #hasHeader(request: Asked, test: HeaderTest, readings: RequestReadings): boolean {
    const { name, wanted } = test;
    if (name === HOST) return this.#hasHost(request, test, readings);
    let count = 0;
    let doubtful = 0;
    let fitting = 0;
    for (const field of request.headers) {
      if (!isTakenFor(field, name)) continue;
      if (field.lower === name) count += 1;
      else doubtful += 1;
      if (typeof wanted === 'boolean') continue;
      const { value } = field;
      const isKnown = readings.spend(test.steps * value.length);
      if (isKnown ? wanted.some((fits) => fits(value)) : this.#isEager) fitting += 1;
    }
    if (typeof wanted === 'boolean') return count + (this.#isEager === wanted ? doubtful : 0) > 0 === wanted;
    return this.#isEager ? fitting > 0 : count > 0 && fitting === count + doubtful;
  }

  /**
   * Compares the host that routed the request and that the service receives: an absolute-form target overrides Host. Ignores case; the port
   * is optional.
   */
  #hasHost({ host, authority }: Asked, { wanted, steps }: HeaderTest, readings: RequestReadings): boolean {
    if (typeof wanted === 'boolean') return (host !== '') === wanted;
    if (host === '') return false;
    if (!readings.spend(2 * steps * authority.length)) return this.#isEager;
    const name = host.replace(/\.$/, '');
    const whole = name + authority.slice(host.length);
    return wanted.some((fits) => fits(name) || fits(whole));
  }
}

const HOST = 'host';

const hasLower = (text: string): boolean => {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= 0x61 && code <= 0x7a) return true;
  }
  return false;
};

const headerTest = (name: string, wanted: boolean | readonly string[]): HeaderTest => {
  const lower = name.toLowerCase();
  if (typeof wanted === 'boolean') return { name: lower, wanted, steps: 0 };
  // Field values have one character per byte, so `ü` in a glob becomes the two characters of its UTF-8 encoding.
  const tests = wanted.map((glob) => compileGlob(byteText(lower === HOST ? glob.toLowerCase() : glob), 'value'));
  return { name: lower, wanted: tests, steps: sum(wanted.map(stepsOfGlob)) };
};

const pathTests = (globs: readonly string[]): PathTests => {
  const exact = globs.map((glob) => compileGlob(glob, 'path'));
  return { exact, folded: globs.some(hasCase) ? globs.map((glob) => compileGlob(glob, 'path', true)) : exact };
};

/** Returns true if a path glob may contain upper case, directly or in an encoded character. */
const hasCase = (glob: string): boolean => glob.includes('%') || foldCase(glob) !== glob;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
